//! Jobs in SideJob's interface: creation, state, ports, runs, ends and parents.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use cronhold_api::Problem;
use cronhold_core::task::port::parse_ports;
use cronhold_core::task::{
    ActOutcome, ChildName, ChildTarget, ClassName, JsonObject, JsonText, NewTask, PortDirection, PortMap, QueueName,
    StateField, TaskAct, TaskId,
};
use cronhold_schedule::{Instant, Span, TextError};
use cronhold_store::tasks::{PortWindow, TaskStore, WindowLimits};

use super::{SideJobBody, SideJobError, SideJobProblem, SideJobReply, SideJobResult, find, object};
use crate::AppState;
use crate::routes::tasks::create::created;
use crate::routes::tasks::{target, task_store};

/// A window without items and children.
const BARE: WindowLimits = WindowLimits { items: 0, bytes: 0, children: 0 };
/// Largest time in a request, in seconds from 1970 or from now: beyond the year 9000.
const SECONDS_MAX: f64 = 222_000_000_000.0;

/// Create a job
#[utoipa::path(post, path = "/sidejob/jobs", tag = "sidejob",
    request_body = Option<Value>,
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn create(State(app): State<Arc<AppState>>, body: SideJobBody) -> SideJobResult {
    let queue = QueueName::parse(&body.required("queue")?)?;
    let class = ClassName::parse(&body.required("class")?)?;
    let tasks = task_store(&app)?;
    let parent = match body.text("parent") {
        Some(parent) => {
            let name = ChildName::parse(&body.required("name")?)?;
            Some((target(find(&*tasks, &parent).await?), name))
        }
        None => None,
    };
    let new = NewTask {
        args: body.field("args").cloned(),
        parent,
        created_by: body.text("by").unwrap_or_default(),
        inports: ports_of(&body, "inports")?.unwrap_or_default(),
        outports: ports_of(&body, "outports")?.unwrap_or_default(),
        ..NewTask::new(queue, class)
    };
    let outcomes = body.commit(&*tasks, None, vec![TaskAct::Create(new)]).await?;
    let id = outcomes.iter().find_map(created);
    let id = id.ok_or_else(|| SideJobError("the store returned no id for a new job".to_owned()))?;
    Ok(object([("job", id_text(id))].into()))
}

/// Get a job
#[utoipa::path(get, path = "/sidejob/jobs/{job}", tag = "sidejob",
    params(("job" = String, Path, description = "Job: its id or an alias")),
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn show(State(app): State<Arc<AppState>>, Path(job): Path<String>) -> SideJobResult {
    let tasks = task_store(&app)?;
    let id = find(&*tasks, &job).await?;
    let window = tasks.window(id, &BARE).await?;
    let window = window.ok_or_else(|| SideJobError(format!("Job {id} does not exist")))?;
    Ok(object(BTreeMap::from([
        ("job", id_text(id)),
        ("state", state_text(&window.state)),
        ("inports", ports_text(&window.inports)),
        ("outports", ports_text(&window.outports)),
    ])))
}

/// Delete a job that was terminated
#[utoipa::path(delete, path = "/sidejob/jobs/{job}", tag = "sidejob",
    params(("job" = String, Path, description = "Job: its id or an alias")),
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn delete(
    State(app): State<Arc<AppState>>,
    Path(job): Path<String>,
    body: SideJobBody,
) -> SideJobResult {
    let tasks = task_store(&app)?;
    let id = find(&*tasks, &job).await?;
    let outcomes = body.commit(&*tasks, None, vec![TaskAct::Delete { task: target(id) }]).await?;
    let deleted = matches!(outcomes.first(), Some(ActOutcome::Deleted(true)));
    let deleted = JsonText::of(&deleted)?;
    Ok(object([("job", id_text(id)), ("delete", deleted)].into()))
}

/// Merge the whole body into the state of a job
#[utoipa::path(post, path = "/sidejob/jobs/{job}/state", tag = "sidejob",
    params(("job" = String, Path, description = "Job: its id or an alias")),
    request_body = Option<Value>,
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn state(
    State(app): State<Arc<AppState>>,
    Path(job): Path<String>,
    body: SideJobBody,
) -> SideJobResult {
    let tasks = task_store(&app)?;
    let id = find(&*tasks, &job).await?;
    let fields = body.0.iter().map(|(field, value)| Ok((StateField::parse(field)?, value.clone())));
    let fields = fields.collect::<Result<Vec<_>, TextError>>()?;
    body.commit(&*tasks, Some(id), vec![TaskAct::SetState { task: target(id), fields }]).await?;
    let state = tasks.window(id, &BARE).await?.map(|window| state_text(&window.state));
    Ok(object([("job", id_text(id)), ("state", state.unwrap_or_else(JsonText::null))].into()))
}

/// Replace the ports of a job
#[utoipa::path(post, path = "/sidejob/jobs/{job}/ports", tag = "sidejob",
    params(("job" = String, Path, description = "Job: its id or an alias")),
    request_body = Option<Value>,
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn ports(
    State(app): State<Arc<AppState>>,
    Path(job): Path<String>,
    body: SideJobBody,
) -> SideJobResult {
    let tasks = task_store(&app)?;
    let id = find(&*tasks, &job).await?;
    let mut acts = Vec::new();
    for (direction, field) in [(PortDirection::In, "inports"), (PortDirection::Out, "outports")] {
        if let Some(ports) = ports_of(&body, field)? {
            acts.push(TaskAct::SetPorts { task: target(id), direction, ports });
        }
    }
    body.commit(&*tasks, Some(id), acts).await?;
    Ok(SideJobReply::null())
}

/// Run a job
#[utoipa::path(post, path = "/sidejob/jobs/{job}/run", tag = "sidejob",
    params(("job" = String, Path, description = "Job: its id or an alias")),
    request_body = Option<Value>,
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn run(State(app): State<Arc<AppState>>, Path(job): Path<String>, body: SideJobBody) -> SideJobResult {
    let tasks = task_store(&app)?;
    let id = find(&*tasks, &job).await?;
    let at = run_time(&*tasks, &body).await?;
    let act = TaskAct::Run { task: target(id), forced: body.flag("force"), at };
    let outcomes = body.commit(&*tasks, Some(id), vec![act]).await?;
    refuse_classless(&outcomes)
}

/// Terminate a job
#[utoipa::path(post, path = "/sidejob/jobs/{job}/terminate", tag = "sidejob",
    params(("job" = String, Path, description = "Job: its id or an alias")),
    request_body = Option<Value>,
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn terminate(
    State(app): State<Arc<AppState>>,
    Path(job): Path<String>,
    body: SideJobBody,
) -> SideJobResult {
    let tasks = task_store(&app)?;
    let id = find(&*tasks, &job).await?;
    let act = TaskAct::Terminate { task: target(id), recursive: body.flag("recursive") };
    let outcomes = body.commit(&*tasks, Some(id), vec![act]).await?;
    refuse_classless(&outcomes)
}

/// Make a job the child of another
#[utoipa::path(post, path = "/sidejob/jobs/{job}/adopt", tag = "sidejob",
    params(("job" = String, Path, description = "Job: its id or an alias")),
    request_body = Option<Value>,
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn adopt(
    State(app): State<Arc<AppState>>,
    Path(job): Path<String>,
    body: SideJobBody,
) -> SideJobResult {
    let tasks = task_store(&app)?;
    let id = find(&*tasks, &job).await?;
    let name = ChildName::parse(&body.required("name")?)?;
    let child = target(find(&*tasks, &body.required("child")?).await?);
    body.commit(&*tasks, Some(id), vec![TaskAct::Adopt { parent: target(id), child, name }]).await?;
    Ok(SideJobReply::null())
}

/// Take a child from a job
#[utoipa::path(post, path = "/sidejob/jobs/{job}/disown", tag = "sidejob",
    params(("job" = String, Path, description = "Job: its id or an alias")),
    request_body = Option<Value>,
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn disown(
    State(app): State<Arc<AppState>>,
    Path(job): Path<String>,
    body: SideJobBody,
) -> SideJobResult {
    let tasks = task_store(&app)?;
    let id = find(&*tasks, &job).await?;
    let child = ChildTarget::Name(ChildName::parse(&body.required("name")?)?);
    body.commit(&*tasks, Some(id), vec![TaskAct::Disown { parent: target(id), child }]).await?;
    Ok(SideJobReply::null())
}

/// SideJob terminates a job whose class is not registered any more, and reports an error.
fn refuse_classless(outcomes: &[ActOutcome]) -> SideJobResult {
    match outcomes.first() {
        Some(ActOutcome::ClassMissing) => {
            Err(SideJobError("the class of the job is not registered any more, so the job is terminated".to_owned()))
        }
        _ => Ok(SideJobReply::null()),
    }
}

/// When a requested run is due: at a time in seconds, or some seconds from now.
async fn run_time(tasks: &dyn TaskStore, body: &SideJobBody) -> Result<Option<Instant>, SideJobError> {
    let micros = |field: &str| {
        let seconds = body.seconds(field)?.filter(|seconds| *seconds > 0.0);
        if seconds.is_some_and(|seconds| seconds > SECONDS_MAX) {
            return Err(SideJobError(format!("`{field}` is too large")));
        }
        #[expect(clippy::cast_possible_truncation, reason = "the number is positive and below the limit")]
        Ok(seconds.map(|seconds| (seconds * 1e6) as i64))
    };
    if let Some(at) = micros("at")? {
        return Ok(Some(Instant::from_micros(at)));
    }
    Ok(match micros("wait")? {
        Some(wait) => Some(tasks.time().await?.plus(Span::from_micros(wait.unsigned_abs()))),
        None => None,
    })
}

/// The ports in a field of the body; `None` if it has no such field.
fn ports_of(body: &SideJobBody, field: &str) -> Result<Option<PortMap>, SideJobError> {
    Ok(body.field(field).map(|ports| parse_ports(ports.as_str())).transpose()?)
}

fn id_text(id: TaskId) -> JsonText {
    JsonText::of_number(id.number())
}

fn state_text(state: &[(StateField, JsonText)]) -> JsonText {
    state.iter().fold(JsonObject::new(), |all, (field, value)| all.with(field.as_str(), value.clone())).to_json()
}

/// Each port with its size and, if there is one, its default.
fn ports_text(ports: &[PortWindow]) -> JsonText {
    let port = |port: &PortWindow| {
        let fields = JsonObject::new().with("size", JsonText::of_number(port.size));
        match &port.default {
            Some(item) => fields.with("default", item.data.clone()).to_json(),
            None => fields.to_json(),
        }
    };
    ports.iter().fold(JsonObject::new(), |all, window| all.with(window.name.as_str(), port(window))).to_json()
}

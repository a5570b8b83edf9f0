//! Events as Cronken's clients publish them, for those that have no Redis to publish them to. Each becomes what a plain
//! request would have asked for; unlike there, whoever sends one is told what came of it.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use cronhold_api::{Code, Control, Problem};
use cronhold_core::command::{Command, Provided};
use cronhold_core::decision::Rejection;
use cronhold_core::record::{Actor, Source};
use cronhold_core::signal::Signal;
use cronhold_core::{Job, JobId, RunId};
use cronhold_engine::Refused;
use cronhold_jobfile::foreign::Form;
use cronhold_jobfile::foreign::cronken::{self, Dialect};
use serde_json::{Map, Value};

use super::job_put::new_uid;
use super::jobs::find;
use crate::App;
use crate::caller::Caller;
use crate::describe::Mistakes;
use crate::extract::Body;
use crate::find_node::find_node;
use crate::problem::Denied;

/// The name that stands for every job.
const ALL: &str = "all";
/// Jobs that one event can name.
const NAMES_MAX: usize = 1_000;

/// The routes.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/v1/control", post(control))
}

/// Does what an event asks for.
#[utoipa::path(post, path = "/api/v1/control", tag = "control", request_body = Control,
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn control(
    State(app): State<Arc<App>>,
    Caller(actor): Caller,
    Body(event): Body<Control>,
) -> Result<StatusCode, Denied> {
    let args = &event.args;
    let command = match event.action.as_str() {
        "pause" => Command::Pause { job: job_or_all(args)?, why: String::new() },
        "resume" => Command::Resume { job: job_or_all(args)? },
        "terminate_run" => Command::Signal { run: run(args)?, signal: signal("SIGTERM") },
        "kill_run" => Command::Signal { run: run(args)?, signal: signal("SIGKILL") },
        "remove" => Command::RemoveJob { id: job(args)?, source: Source::Api, provided: Provided::Any },
        "trigger" => {
            let id = app.node.random_run_id();
            Command::Run { job: job(args)?, args: Default::default(), id, at: None }
        }
        "add" => {
            let (id, job) = definition(&app, args)?;
            let (uid, provided) = (new_uid(&app), Provided::New);
            Command::PutJob { id, job: Arc::new(job), source: Source::Api, uid, provided }
        }
        "reload" => return reload(&app).await,
        "validate" => return validate(&app, args).await,
        "drain_nodes" => return drain(&app, actor, args).await,
        other => {
            let detail = format!("`{}` is not an event", cronhold_schedule::text::shortened(other));
            return Err(Denied::new(Code::Invalid, detail).hint(
                "events are pause, resume, terminate_run, kill_run, add, remove, reload, trigger, validate \
                       and drain_nodes",
            ));
        }
    };
    ask(&app, actor, command).await
}

/// Asks the node. What is so already is done.
async fn ask(app: &App, actor: Actor, command: Command) -> Result<StatusCode, Denied> {
    match app.node.ask(actor, command).await {
        Ok(_) | Err(Refused::Rejected(Rejection::Paused(_) | Rejection::NotPaused(_))) => Ok(StatusCode::NO_CONTENT),
        Err(refused) => Err(refused.into()),
    }
}

async fn reload(app: &App) -> Result<StatusCode, Denied> {
    app.files.reload().await;
    Ok(StatusCode::NO_CONTENT)
}

/// Lets nodes start nothing any more. All of them must be there, or none is asked.
async fn drain(app: &App, actor: Actor, args: &Value) -> Result<StatusCode, Denied> {
    let names = match args {
        Value::Array(names) if names.len() > NAMES_MAX => {
            return Err(Denied::new(Code::Invalid, format!("one event can name at most {NAMES_MAX} nodes")));
        }
        Value::Array(names) => names.iter().collect(),
        name => vec![name],
    };
    let mut nodes = Vec::with_capacity(names.len());
    for name in names {
        nodes.push(find_node(&*app.store, text(name, "names of nodes")?).await?.id);
    }
    for node in nodes {
        ask(app, actor.clone(), Command::Drain { node, on: true }).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Looks whether jobs are good. Those that are stored are; what can be wrong stands in files.
async fn validate(app: &App, args: &Value) -> Result<StatusCode, Denied> {
    let mistakes = Mistakes::now(app);
    let names = match args {
        Value::Array(names) if names.len() > NAMES_MAX => {
            return Err(Denied::new(Code::Invalid, format!("one event can name at most {NAMES_MAX} jobs")));
        }
        Value::Array(names) => names.iter().map(job).collect::<Result<Vec<JobId>, Denied>>()?,
        Value::String(_) => vec![job(args)?],
        _ => Vec::new(),
    };
    let mut wrong = Vec::new();
    for (id, found) in &mistakes.of_jobs {
        if names.is_empty() || names.contains(id) {
            wrong.extend(found.iter().map(|at| format!("{}:{}:{}: {}", at.file, at.line, at.column, at.message)));
        }
    }
    if !wrong.is_empty() {
        return Err(Denied::new(Code::Invalid, wrong.join("\n")));
    }
    for id in names {
        find(app, &id).await?.ok_or(Rejection::NoJob(id))?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The job of `add`, which is given in Cronken's own form.
fn definition(app: &App, args: &Value) -> Result<(JobId, Job), Denied> {
    let bad = || {
        Denied::new(Code::Invalid, "`args` of `add` must be a map with `job_name` and `job_def`")
            .hint(r#"{"job_name": "backup", "job_def": {"cron_args": {…}, "job_args": {…}}}"#)
    };
    let map: &Map<String, Value> = args.as_object().ok_or_else(bad)?;
    let (name, form) = (map.get("job_name").ok_or_else(bad)?, map.get("job_def").ok_or_else(bad)?);
    let world = (app.world)();
    let options = cronken::Options { zones: &world.zones, dialect: Dialect::Cron };
    let form = Form::parse(&form.to_string()).map_err(|mistake| Denied::new(Code::Invalid, mistake.to_string()))?;
    let read = cronken::read_form(&form, &options);
    let wrong = || read.mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let found = read.job.clone().ok_or_else(|| Denied::new(Code::Invalid, wrong()))?;
    Ok((job(name)?, found))
}

/// The job that an event names.
fn job(args: &Value) -> Result<JobId, Denied> {
    JobId::parse(text(args, "the name of a job")?).map_err(|error| Denied::unreadable(Code::Invalid, error))
}

fn job_or_all(args: &Value) -> Result<Option<JobId>, Denied> {
    if args == ALL { Ok(None) } else { job(args).map(Some) }
}

fn run(args: &Value) -> Result<RunId, Denied> {
    RunId::parse(text(args, "the id of a run")?).map_err(|error| Denied::unreadable(Code::Invalid, error))
}

fn text<'a>(args: &'a Value, what: &str) -> Result<&'a str, Denied> {
    args.as_str().ok_or_else(|| Denied::new(Code::Invalid, format!("`args` must be {what}, as a text")))
}

fn signal(name: &str) -> Signal {
    Signal::parse(name).expect("every system has it")
}

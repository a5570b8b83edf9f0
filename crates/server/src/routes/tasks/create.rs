//! The creation of a task: one unit, which also gives it its alias and writes its first values.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use cronhold_api::{CreatedTask, Problem, ProblemCode, TaskBody, TaskPortOptions};
use cronhold_core::task::{
    ActOutcome, Channel, ChildName, ClassName, JsonText, NewTask, PortDirection, PortItem, PortMap, PortName,
    PortOptions, PortTarget, QueueName, TaskAct, TaskAlias, TaskId, TaskTarget,
};
use cronhold_schedule::TextError;
use cronhold_store::tasks::{TaskReceipt, TaskStore};

use super::{commit, created_status, find_named, target, task_store, unit, valid};
use crate::AppState;
use crate::caller::RequestIdentity;
use crate::extract::JsonBody;
use crate::problem::ApiError;

/// Longest name of a creator, in bytes.
const BY_MAX: usize = 200;

/// Create a task
///
/// Its ports, its alias and its first values are there before its first step.
#[utoipa::path(post, path = "/api/v1/tasks", tag = "tasks",
    params(("Idempotency-Key" = Option<String>, Header,
        description = "Requests with the same key within 24 hours create only one task")),
    request_body = TaskBody,
    responses(
        (status = 200, description = "A task was created with this key before", body = CreatedTask),
        (status = 201, description = "Created", body = CreatedTask),
        (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn create(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    headers: HeaderMap,
    JsonBody(body): JsonBody<TaskBody>,
) -> Result<Response, ApiError> {
    let tasks = task_store(&app)?;
    let acts = acts(&*tasks, body, actor.to_string()).await?;
    let (id, is_new) = match commit(&*tasks, unit(&headers, "task", acts)?).await? {
        TaskReceipt::Committed(outcomes) => (outcomes.iter().find_map(created), true),
        TaskReceipt::Repeated(created) => (created.first().copied(), false),
    };
    let Some(id) = id else {
        return Err(ApiError::new(ProblemCode::Internal, "the store returned no id for a new task"));
    };
    let location = [(header::LOCATION, format!("{}/tasks/{id}", cronhold_api::BASE))];
    Ok((created_status(is_new), location, Json(CreatedTask { id: id.number() })).into_response())
}

/// The task that an act created.
pub(crate) fn created(outcome: &ActOutcome) -> Option<TaskId> {
    match outcome {
        ActOutcome::Created(id) => Some(*id),
        _ => None,
    }
}

/// The acts that create a task with all that the body names.
async fn acts(tasks: &dyn TaskStore, body: TaskBody, actor: String) -> Result<Vec<TaskAct>, ApiError> {
    let parent = match (&body.parent, &body.name) {
        (Some(parent), Some(name)) => {
            let name = valid("name", ChildName::parse(name))?;
            Some((target(find_named(tasks, parent).await?.id), name))
        }
        (None, None) => None,
        (Some(_), None) => {
            let error = ApiError::new(ProblemCode::Invalid, "`parent` needs `name`");
            return Err(error.hint("name the task among the children of its parent"));
        }
        (None, Some(_)) => {
            let error = ApiError::new(ProblemCode::Invalid, "`name` needs `parent`");
            return Err(error.hint("`name` is the name among the children of a parent; a global name is an `alias`"));
        }
    };
    let created_by = body.by.unwrap_or(actor);
    if created_by.len() > BY_MAX || created_by.chars().any(char::is_control) {
        let message = format!("`by` can have at most {BY_MAX} bytes and no control characters");
        return Err(ApiError::new(ProblemCode::Invalid, message));
    }
    let mut acts = vec![TaskAct::Create(NewTask {
        queue: valid("queue", QueueName::parse(&body.queue))?,
        class: valid("class", ClassName::parse(&body.class))?,
        args: body.args.as_ref().map(JsonText::list),
        parent,
        created_by,
        inports: port_map("inports", &body.inports)?,
        outports: port_map("outports", &body.outports)?,
        at: body.at,
    })];
    let new = TaskTarget::New(0);
    if let Some(alias) = &body.alias {
        acts.push(TaskAct::AddAlias { task: new, alias: valid("alias", TaskAlias::parse(alias))? });
    }
    for (port, values) in body.input {
        let port = valid("in", PortName::parse(&port))?;
        let items = values.into_iter().map(PortItem::new).collect();
        let port = PortTarget { task: new, direction: PortDirection::In, port };
        // The task has a first step anyway, which may be due later.
        acts.push(TaskAct::Write { port, items, as_default: false, notify: false });
    }
    Ok(acts)
}

/// The options of ports.
pub(super) fn port_map(what: &str, ports: &BTreeMap<String, TaskPortOptions>) -> Result<PortMap, ApiError> {
    let options = ports.iter().map(|(name, options)| {
        let name = PortName::parse(name)?;
        let channels = channels(&options.channels)?;
        Ok((name, PortOptions { default: options.default.clone(), channels }))
    });
    valid(what, options.collect::<Result<_, TextError>>())
}

/// Channels by their names.
pub(super) fn channels(names: &[String]) -> Result<Vec<Channel>, TextError> {
    names.iter().map(|name| Channel::parse(name)).collect()
}

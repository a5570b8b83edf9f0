//! Tasks: one file per group of requests. This file finds the task store and the task of a request, and commits the
//! changes of a request as one unit.

pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod family;
pub(crate) mod ports;
pub(crate) mod show;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use cronhold_api::{ProblemCode, TaskReference};
use cronhold_core::task::{ActOutcome, TaskAct, TaskId, TaskKey, TaskRecord, TaskRefusal, TaskTarget, TaskUnit};
use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;
use cronhold_store::tasks::{TaskReceipt, TaskStore, TaskUnitError};

use super::runs::key;
use crate::AppState;
use crate::problem::ApiError;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/v1/tasks", get(show::list).post(create::create))
        .route("/api/v1/tasks/{id}", get(show::show).delete(change::delete))
        .route("/api/v1/tasks/{id}/children", get(family::children))
        .route("/api/v1/tasks/{id}/tree", get(family::tree))
        .route("/api/v1/tasks/{id}/run", post(change::run))
        .route("/api/v1/tasks/{id}/terminate", post(change::terminate))
        .route("/api/v1/tasks/{id}/adopt", post(family::adopt))
        .route("/api/v1/tasks/{id}/disown", post(family::disown))
        .route("/api/v1/tasks/{id}/aliases", post(change::aliases))
        .route("/api/v1/tasks/{id}/state", post(change::state))
        .route("/api/v1/tasks/{id}/ports", post(ports::replace))
        .route("/api/v1/tasks/{id}/connect", post(ports::connect))
        .route("/api/v1/tasks/{id}/inports/{port}", get(ports::show_in).post(ports::change_in))
        .route("/api/v1/tasks/{id}/inports/{port}/read", post(ports::read_in))
        .route("/api/v1/tasks/{id}/outports/{port}", get(ports::show_out).post(ports::change_out))
        .route("/api/v1/tasks/{id}/outports/{port}/read", post(ports::read_out))
}

/// The tasks of the store; an error if it keeps none.
pub(super) fn task_store(app: &AppState) -> Result<Arc<dyn TaskStore>, ApiError> {
    app.store.task_store().ok_or_else(|| {
        ApiError::new(ProblemCode::Unsupported, "the store keeps no tasks, queues and channels")
            .hint("use the embedded SQLite store or Redis, which keep tasks; ZooKeeper does not")
    })
}

/// Finds a task by its id or an alias.
pub(super) async fn find(tasks: &dyn TaskStore, text: &str) -> Result<TaskRecord, ApiError> {
    let key = TaskKey::parse(text).map_err(|error| ApiError::unreadable(ProblemCode::BadRequest, error))?;
    tasks.find(&key).await?.ok_or_else(|| {
        ApiError::new(ProblemCode::NotFound, format!("there is no task `{}`", shortened(text)))
            .hint("`cronhold task list` lists all tasks")
    })
}

/// Finds a task that a body names.
pub(super) async fn find_named(tasks: &dyn TaskStore, name: &TaskReference) -> Result<TaskRecord, ApiError> {
    find(tasks, &name.to_string()).await
}

/// Commits a unit.
pub(super) async fn commit(tasks: &dyn TaskStore, unit: TaskUnit) -> Result<TaskReceipt, ApiError> {
    match tasks.commit(vec![unit]).await.into_iter().next() {
        Some(Ok(receipt)) => Ok(receipt),
        Some(Err(TaskUnitError::Refused(refusal))) => Err(refusal.into()),
        Some(Err(TaskUnitError::Fault(fault))) => Err(fault.into()),
        None => Err(ApiError::new(ProblemCode::Internal, "the store returned no result for a unit")),
    }
}

/// Commits acts without a key, and returns what they returned.
pub(super) async fn commit_acts(tasks: &dyn TaskStore, acts: Vec<TaskAct>) -> Result<Vec<ActOutcome>, ApiError> {
    match commit(tasks, TaskUnit::request(acts)).await? {
        TaskReceipt::Committed(outcomes) => Ok(outcomes),
        TaskReceipt::Repeated(_) => Ok(Vec::new()),
    }
}

/// The unit of a request, which takes effect once for its idempotency key if it has one. `what` distinguishes requests
/// that may have the same key.
pub(super) fn unit(headers: &HeaderMap, what: &str, acts: Vec<TaskAct>) -> Result<TaskUnit, ApiError> {
    let unit = TaskUnit::request(acts);
    Ok(match key(headers)? {
        // The length makes different pairs of texts different keys.
        Some(key) => unit.once(&format!("http:{}:{what}:{key}", what.len())),
        None => unit,
    })
}

/// The target of an act.
pub(super) const fn target(task: TaskId) -> TaskTarget {
    TaskTarget::Id(task)
}

/// Parses a part of a body.
pub(super) fn valid<T>(what: &str, parsed: Result<T, TextError>) -> Result<T, ApiError> {
    parsed.map_err(|mut error| {
        error.message = format!("`{what}`: {}", error.message);
        ApiError::unreadable(ProblemCode::Invalid, error)
    })
}

/// The error for a task whose class no worker has registered any more. The store has terminated the task.
pub(super) fn class_missing(task: &TaskRecord) -> ApiError {
    let TaskRecord { id, queue, class, .. } = task;
    let message = format!(
        "task {id} is terminated now, because its class `{class}` is not registered for queue `{queue}` any more"
    );
    ApiError::new(ProblemCode::Conflict, message).hint(CLASSES_HINT)
}

const CLASSES_HINT: &str = "`cronhold queues` lists the registered classes, and `cronhold workers` the workers that are \
                            alive; start a worker that registers the class";

impl From<TaskRefusal> for ApiError {
    fn from(refusal: TaskRefusal) -> Self {
        let (code, hint) = match &refusal {
            TaskRefusal::UnknownTask(_) => (ProblemCode::NotFound, Some("`cronhold task list` lists all tasks")),
            TaskRefusal::UnknownPort(_) => {
                (ProblemCode::NotFound, Some("`cronhold task show` lists the ports of a task"))
            }
            TaskRefusal::UnknownChild(_) => {
                (ProblemCode::NotFound, Some("`cronhold task tree` lists the children of a task"))
            }
            TaskRefusal::UnknownAlias { .. } => {
                (ProblemCode::NotFound, Some("`cronhold task show` lists the aliases of a task"))
            }
            TaskRefusal::UnknownClass { .. } => (ProblemCode::Conflict, Some(CLASSES_HINT)),
            TaskRefusal::StepLost(_)
            | TaskRefusal::ItemsTaken(_)
            | TaskRefusal::ChildNameTaken { .. }
            | TaskRefusal::HasParent { .. }
            | TaskRefusal::TreeCycle { .. }
            | TaskRefusal::AliasTaken { .. } => (ProblemCode::Conflict, None),
            TaskRefusal::UnknownNewTask(_)
            | TaskRefusal::TemplatePort(_)
            | TaskRefusal::TooLarge { .. }
            | TaskRefusal::Invalid(_) => (ProblemCode::Invalid, None),
        };
        let error = Self::new(code, refusal.to_string());
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

/// The status of a request that creates something: 201, or 200 if it was carried out before.
pub(super) const fn created_status(is_new: bool) -> StatusCode {
    if is_new { StatusCode::CREATED } else { StatusCode::OK }
}

//! Requests that change one task: run, terminate, delete, aliases and state.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use cronhold_api::{AliasesBody, Problem, ProblemCode, TaskDetail, TaskRunBody, TaskStateBody, TerminateBody};
use cronhold_core::task::{ActOutcome, StateField, TaskAct, TaskAlias, TaskRecord};
use cronhold_schedule::TextError;

use super::show::detail;
use super::{class_missing, commit_acts, find, target, task_store, valid};
use crate::AppState;
use crate::extract::{JsonBody, PathSegment};
use crate::problem::ApiError;

/// Run a task
///
/// Requests a step. A task that has failed or was terminated needs `force`.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/run", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias")),
    request_body = TaskRunBody,
    responses((status = 200, body = TaskDetail), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn run(
    State(app): State<Arc<AppState>>,
    PathSegment(id): PathSegment,
    JsonBody(TaskRunBody { force, at, parent }): JsonBody<TaskRunBody>,
) -> Result<Json<TaskDetail>, ApiError> {
    let tasks = task_store(&app)?;
    let record = find(&*tasks, &id).await?;
    let task = target(record.id);
    let act = match parent {
        true => TaskAct::RunParent { task, forced: force, at },
        false => TaskAct::Run { task, forced: force, at },
    };
    match commit_acts(&*tasks, vec![act]).await?.first() {
        Some(ActOutcome::Ran(None)) => Err(not_runnable(&record, parent)),
        Some(ActOutcome::ClassMissing) => Err(class_missing(&record)),
        _ => detail(&*tasks, record.id).await,
    }
}

fn not_runnable(record: &TaskRecord, is_for_parent: bool) -> ApiError {
    let TaskRecord { id, status, .. } = record;
    let message = match (&record.parent, is_for_parent) {
        (None, true) => {
            return ApiError::new(ProblemCode::Conflict, format!("task {id} has no parent"));
        }
        (Some((parent, _)), true) => format!("the parent of task {id}, task {parent}, has failed or was terminated"),
        (_, false) => format!("task {id} is {status}"),
    };
    ApiError::new(ProblemCode::Conflict, message).hint("set `force` (`cronhold task run --force`) to run it anyway")
}

/// Terminate a task
///
/// The shutdown of its worker is called, and then the task has ended. Without `recursive`, its children stay as they are.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/terminate", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias")),
    request_body = TerminateBody,
    responses((status = 200, body = TaskDetail), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn terminate(
    State(app): State<Arc<AppState>>,
    PathSegment(id): PathSegment,
    JsonBody(TerminateBody { recursive }): JsonBody<TerminateBody>,
) -> Result<Json<TaskDetail>, ApiError> {
    let tasks = task_store(&app)?;
    let task = find(&*tasks, &id).await?.id;
    commit_acts(&*tasks, vec![TaskAct::Terminate { task: target(task), recursive }]).await?;
    detail(&*tasks, task).await
}

/// Delete a task and its descendants
///
/// All of them must have ended.
#[utoipa::path(delete, path = "/api/v1/tasks/{id}", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias")),
    responses((status = 204), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn delete(
    State(app): State<Arc<AppState>>,
    PathSegment(id): PathSegment,
) -> Result<StatusCode, ApiError> {
    let tasks = task_store(&app)?;
    let task = find(&*tasks, &id).await?.id;
    match commit_acts(&*tasks, vec![TaskAct::Delete { task: target(task) }]).await?.first() {
        Some(ActOutcome::Deleted(true)) => Ok(StatusCode::NO_CONTENT),
        _ => {
            let message = format!("task {task} cannot be deleted, because it or a task below it is not terminated");
            let hint = format!(
                "`cronhold task terminate {task} --recursive` ends all of them; `cronhold task tree {task}` lists them"
            );
            Err(ApiError::new(ProblemCode::Conflict, message).hint(hint))
        }
    }
}

/// Add and remove aliases of a task
#[utoipa::path(post, path = "/api/v1/tasks/{id}/aliases", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias")),
    request_body = AliasesBody,
    responses((status = 200, body = TaskDetail), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn aliases(
    State(app): State<Arc<AppState>>,
    PathSegment(id): PathSegment,
    JsonBody(AliasesBody { add, remove }): JsonBody<AliasesBody>,
) -> Result<Json<TaskDetail>, ApiError> {
    let tasks = task_store(&app)?;
    let id = find(&*tasks, &id).await?.id;
    let task = target(id);
    let mut acts = Vec::with_capacity(add.len() + remove.len());
    for alias in &remove {
        acts.push(TaskAct::RemoveAlias { task, alias: valid("remove", TaskAlias::parse(alias))? });
    }
    for alias in &add {
        acts.push(TaskAct::AddAlias { task, alias: valid("add", TaskAlias::parse(alias))? });
    }
    commit_acts(&*tasks, acts).await?;
    detail(&*tasks, id).await
}

/// Set and remove fields of the state of a task
///
/// This does not request a step.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/state", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias")),
    request_body = TaskStateBody,
    responses((status = 200, body = TaskDetail), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn state(
    State(app): State<Arc<AppState>>,
    PathSegment(id): PathSegment,
    JsonBody(TaskStateBody { set, unset }): JsonBody<TaskStateBody>,
) -> Result<Json<TaskDetail>, ApiError> {
    let tasks = task_store(&app)?;
    let id = find(&*tasks, &id).await?.id;
    let task = target(id);
    let removed: Result<Vec<StateField>, TextError> = unset.iter().map(|field| StateField::parse(field)).collect();
    let fields = set.into_iter().map(|(field, value)| Ok((StateField::parse(&field)?, value)));
    let fields: Result<_, TextError> = fields.collect();
    let acts = vec![
        TaskAct::UnsetState { task, fields: valid("unset", removed)? },
        TaskAct::SetState { task, fields: valid("set", fields)? },
    ];
    commit_acts(&*tasks, acts).await?;
    detail(&*tasks, id).await
}

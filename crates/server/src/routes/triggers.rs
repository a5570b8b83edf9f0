//! Triggers of a job: receives, lists and removes them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{delete, post};
use axum::{Json, Router};
use cronhold_api::{Problem, ProblemCode, RemovedTriggers, TriggerBody, TriggerList, TriggerReceipt};
use cronhold_core::command::Command;
use cronhold_core::decision::{CommandReply, Rejection, TriggerStatus};
use cronhold_core::job::Batching;
use cronhold_core::record::{Actor, Record, RecordKey, TriggerId, TriggerSet};
use cronhold_core::{JobId, RunId};

use super::jobs::find;
use crate::AppState;
use crate::caller::RequestIdentity;
use crate::extract::{JobIdPath, JsonBody, TriggerPath};
use crate::problem::ApiError;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/v1/jobs/{id}/triggers", post(create).get(list).delete(clear))
        .route("/api/v1/jobs/{id}/triggers/{trigger}", delete(remove))
}

/// Trigger a job
///
/// Without a batching policy, the trigger creates a run at once. With one, the policy decides when a run is created, and
/// which triggers it stands for.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/triggers", tag = "triggers",
    params(("id" = String, Path, description = "Job id")),
    request_body = TriggerBody,
    responses(
        (status = 200, description = "The job has received this id before", body = TriggerReceipt),
        (status = 201, description = "Received", body = TriggerReceipt),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn create(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    JobIdPath(job): JobIdPath,
    JsonBody(TriggerBody { id, args }): JsonBody<TriggerBody>,
) -> Result<(StatusCode, Json<TriggerReceipt>), ApiError> {
    let run = app.node.random_run_id();
    let id = id.unwrap_or_else(|| run.to_string());
    let trigger = TriggerId::parse(&id).map_err(|error| ApiError::unreadable(ProblemCode::Invalid, error))?;
    let command = Command::Trigger { job: job.clone(), args, trigger, message: None, id: run };
    receive(&app, actor, command, &job, id).await
}

/// Sends the command of a trigger. The status of the response shows whether the trigger is new.
pub(super) async fn receive(
    app: &AppState,
    actor: Actor,
    command: Command,
    job: &JobId,
    id: String,
) -> Result<(StatusCode, Json<TriggerReceipt>), ApiError> {
    let CommandReply::Trigger { status, run } = app.request(actor, command).await? else {
        return Err(ApiError::new(ProblemCode::Internal, "unexpected reply of the node to a trigger"));
    };
    let is_new = status != TriggerStatus::Duplicate;
    let receipt = TriggerReceipt {
        id,
        job: job.to_string(),
        status: TriggerReceipt::status_name(status).to_owned(),
        run: run.map(|(run, _): (RunId, _)| run.to_string()),
        number: run.map(|(_, number)| number.0),
    };
    Ok((if is_new { StatusCode::CREATED } else { StatusCode::OK }, Json(receipt)))
}

/// List the pending triggers of a job, and the latest decisions about its triggers
#[utoipa::path(get, path = "/api/v1/jobs/{id}/triggers", tag = "triggers",
    params(("id" = String, Path, description = "Job id")),
    responses((status = 200, body = TriggerList), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn list(
    State(app): State<Arc<AppState>>,
    JobIdPath(id): JobIdPath,
) -> Result<Json<TriggerList>, ApiError> {
    let job = find(&app, &id).await?.ok_or_else(|| Rejection::NoJob(id.clone()))?;
    let found = app.store.load(&[RecordKey::Triggers(id.clone())]).await?.into_iter().flatten().next();
    let policy = job.job.batching_policy().map(Batching::name);
    Ok(Json(match found.map(|stored| stored.record) {
        Some(Record::Triggers(set)) => TriggerList::new(&set, policy),
        _ => TriggerList::new(&TriggerSet::new(id), policy),
    }))
}

/// Remove all pending triggers of a job
///
/// Their ids stay known for 24 hours, so they have no effect if they are sent again.
#[utoipa::path(delete, path = "/api/v1/jobs/{id}/triggers", tag = "triggers",
    params(("id" = String, Path, description = "Job id")),
    responses((status = 200, body = RemovedTriggers), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn clear(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    JobIdPath(job): JobIdPath,
) -> Result<Json<RemovedTriggers>, ApiError> {
    send_removal(&app, actor, job, None).await
}

/// Remove a pending trigger of a job
///
/// Its id stays known for 24 hours, so it has no effect if it is sent again.
#[utoipa::path(delete, path = "/api/v1/jobs/{id}/triggers/{trigger}", tag = "triggers",
    params(
        ("id" = String, Path, description = "Job id"),
        ("trigger" = String, Path, description = "Id of the trigger"),
    ),
    responses((status = 200, body = RemovedTriggers), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn remove(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    TriggerPath(job, trigger): TriggerPath,
) -> Result<Json<RemovedTriggers>, ApiError> {
    send_removal(&app, actor, job, Some(trigger)).await
}

async fn send_removal(
    app: &AppState,
    actor: Actor,
    job: JobId,
    trigger: Option<TriggerId>,
) -> Result<Json<RemovedTriggers>, ApiError> {
    match app.request(actor, Command::RemoveTriggers { job, trigger }).await? {
        CommandReply::Removed { triggers } => Ok(Json(RemovedTriggers { removed: triggers })),
        _ => Err(ApiError::new(ProblemCode::Internal, "unexpected reply of the node to a removal of triggers")),
    }
}

#[cfg(test)]
mod tests;

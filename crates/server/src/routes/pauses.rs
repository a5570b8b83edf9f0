//! Pauses of a job and of everything.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use cronhold_api::{PauseBody, Problem, ProblemCode};
use cronhold_core::JobId;
use cronhold_core::command::Command;
use cronhold_core::record::Actor;
use serde::Deserialize;

use crate::AppState;
use crate::caller::RequestIdentity;
use crate::extract::{JobIdPath, JsonBody};
use crate::problem::ApiError;

/// Maximum length of a reason, in bytes. It is part of records that are read often.
const WHY_MAX: usize = 1_000;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/v1/pause", post(pause_all))
        .route("/api/v1/resume", post(resume_all))
        .route("/api/v1/jobs/{id}/pause", post(pause))
        .route("/api/v1/jobs/{id}/resume", post(resume))
}

/// The body of a request without parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmptyBody {}

/// Pause a job
///
/// Cronhold starts no runs of the job automatically until it is resumed, or until the given time.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/pause", tag = "jobs",
    params(("id" = String, Path, description = "Job id")),
    request_body = PauseBody,
    responses((status = 200, description = "Nothing to do: it was so already"), (status = 204),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn pause(
    State(app): State<Arc<AppState>>,
    caller: RequestIdentity,
    JobIdPath(id): JobIdPath,
    JsonBody(body): JsonBody<PauseBody>,
) -> Result<StatusCode, ApiError> {
    send_pause(&app, caller, Some(id), body).await
}

/// Resume a job
#[utoipa::path(post, path = "/api/v1/jobs/{id}/resume", tag = "jobs",
    params(("id" = String, Path, description = "Job id")),
    responses((status = 200, description = "Nothing to do: it was so already"), (status = 204),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn resume(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    JobIdPath(id): JobIdPath,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Result<StatusCode, ApiError> {
    send(&app, actor, Command::Resume { job: Some(id) }).await
}

/// Pause all jobs
///
/// Cronhold starts no runs automatically until everything is resumed, or until the given time.
#[utoipa::path(post, path = "/api/v1/pause", tag = "jobs", request_body = PauseBody,
    responses((status = 200, description = "Nothing to do: it was so already"), (status = 204),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn pause_all(
    State(app): State<Arc<AppState>>,
    caller: RequestIdentity,
    JsonBody(body): JsonBody<PauseBody>,
) -> Result<StatusCode, ApiError> {
    send_pause(&app, caller, None, body).await
}

/// Resume all jobs
///
/// Jobs that are paused individually stay paused.
#[utoipa::path(post, path = "/api/v1/resume", tag = "jobs",
    responses((status = 200, description = "Nothing to do: it was so already"), (status = 204),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn resume_all(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Result<StatusCode, ApiError> {
    send(&app, actor, Command::Resume { job: None }).await
}

async fn send_pause(
    app: &AppState,
    RequestIdentity(actor): RequestIdentity,
    job: Option<JobId>,
    PauseBody { why, until }: PauseBody,
) -> Result<StatusCode, ApiError> {
    if why.len() > WHY_MAX {
        return Err(ApiError::new(ProblemCode::Invalid, format!("`why` can have at most {WHY_MAX} bytes")));
    }
    send(app, actor, Command::Pause { job, why, until }).await
}

/// Sends a command. The status of the response shows whether something has changed.
async fn send(app: &AppState, actor: Actor, command: Command) -> Result<StatusCode, ApiError> {
    Ok(if app.ensure(actor, command).await? { StatusCode::NO_CONTENT } else { StatusCode::OK })
}

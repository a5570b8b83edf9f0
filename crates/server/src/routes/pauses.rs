//! Pauses of a job and of everything.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use cronhold_api::{PauseBody, Problem, ProblemCode};
use cronhold_core::JobId;
use cronhold_core::command::Command;
use serde::Deserialize;

use crate::AppState;
use crate::caller::RequestIdentity;
use crate::extract::{JobIdPath, JsonBody};
use crate::problem::ApiError;

/// Longest reason in bytes; it stands in records that are read often.
const WHY_MAX: usize = 1_000;

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/v1/pause", post(pause_all))
        .route("/api/v1/resume", post(resume_all))
        .route("/api/v1/jobs/{id}/pause", post(pause))
        .route("/api/v1/jobs/{id}/resume", post(resume))
}

/// A body that says nothing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmptyBody {}

/// Starts nothing of a job by itself any more.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/pause", tag = "jobs",
    params(("id" = String, Path, description = "The job's id")),
    request_body = PauseBody,
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn pause(
    State(app): State<Arc<AppState>>,
    caller: RequestIdentity,
    JobIdPath(id): JobIdPath,
    JsonBody(body): JsonBody<PauseBody>,
) -> Result<StatusCode, ApiError> {
    begin(&app, caller, Some(id), body.why).await
}

/// Starts a job by itself again.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/resume", tag = "jobs",
    params(("id" = String, Path, description = "The job's id")),
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn resume(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    JobIdPath(id): JobIdPath,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Result<StatusCode, ApiError> {
    app.ask(actor, Command::Resume { job: Some(id) }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Starts nothing by itself any more.
#[utoipa::path(post, path = "/api/v1/pause", tag = "jobs", request_body = PauseBody,
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn pause_all(
    State(app): State<Arc<AppState>>,
    caller: RequestIdentity,
    JsonBody(body): JsonBody<PauseBody>,
) -> Result<StatusCode, ApiError> {
    begin(&app, caller, None, body.why).await
}

/// Starts things by itself again.
#[utoipa::path(post, path = "/api/v1/resume", tag = "jobs",
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn resume_all(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Result<StatusCode, ApiError> {
    app.ask(actor, Command::Resume { job: None }).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn begin(
    app: &AppState,
    RequestIdentity(actor): RequestIdentity,
    job: Option<JobId>,
    why: String,
) -> Result<StatusCode, ApiError> {
    if why.len() > WHY_MAX {
        return Err(ApiError::new(ProblemCode::Invalid, format!("`why` can have at most {WHY_MAX} bytes")));
    }
    app.ask(actor, Command::Pause { job, why }).await?;
    Ok(StatusCode::NO_CONTENT)
}

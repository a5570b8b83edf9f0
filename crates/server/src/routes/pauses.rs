//! Pauses of a job and of everything.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use cronhold_api::{Code, PauseBody, Problem};
use cronhold_core::JobId;
use cronhold_core::command::Command;
use serde::Deserialize;

use crate::App;
use crate::caller::Caller;
use crate::extract::{Body, OfJob};
use crate::problem::Denied;

/// Longest reason in bytes; it stands in records that are read often.
const WHY_MAX: usize = 1_000;

/// The routes.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/pause", post(pause_all))
        .route("/api/v1/resume", post(resume_all))
        .route("/api/v1/jobs/{id}/pause", post(pause))
        .route("/api/v1/jobs/{id}/resume", post(resume))
}

/// A body that says nothing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// Starts nothing of a job by itself any more.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/pause", tag = "jobs",
    params(("id" = String, Path, description = "The job's id")),
    request_body = PauseBody,
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    caller: Caller,
    OfJob(id): OfJob,
    Body(body): Body<PauseBody>,
) -> Result<StatusCode, Denied> {
    begin(&app, caller, Some(id), body.why).await
}

/// Starts a job by itself again.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/resume", tag = "jobs",
    params(("id" = String, Path, description = "The job's id")),
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    Caller(actor): Caller,
    OfJob(id): OfJob,
    Body(Nothing {}): Body<Nothing>,
) -> Result<StatusCode, Denied> {
    app.ask(actor, Command::Resume { job: Some(id) }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Starts nothing by itself any more.
#[utoipa::path(post, path = "/api/v1/pause", tag = "jobs", request_body = PauseBody,
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn pause_all(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(body): Body<PauseBody>,
) -> Result<StatusCode, Denied> {
    begin(&app, caller, None, body.why).await
}

/// Starts things by itself again.
#[utoipa::path(post, path = "/api/v1/resume", tag = "jobs",
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn resume_all(
    State(app): State<Arc<App>>,
    Caller(actor): Caller,
    Body(Nothing {}): Body<Nothing>,
) -> Result<StatusCode, Denied> {
    app.ask(actor, Command::Resume { job: None }).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn begin(app: &App, Caller(actor): Caller, job: Option<JobId>, why: String) -> Result<StatusCode, Denied> {
    if why.len() > WHY_MAX {
        return Err(Denied::new(Code::Invalid, format!("`why` can have at most {WHY_MAX} bytes")));
    }
    app.ask(actor, Command::Pause { job, why }).await?;
    Ok(StatusCode::NO_CONTENT)
}

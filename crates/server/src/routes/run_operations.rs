//! What people can do with a run. Each is one command of the core; whether the run's state allows it is decided there.
//! The answer is the run as it is afterwards.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use axum::{Extension, Json, Router};
use cronhold_api::{CreatedRun, MarkBody, Problem, ProblemCode, RerunBody, RunSummary, SignalBody, SkipBody};
use cronhold_core::RunId;
use cronhold_core::command::Command;
use cronhold_core::decision::Rejection;
use cronhold_core::record::Actor;
use cronhold_core::signal::Signal;

use super::runs::{ask_for_run, key};
use crate::AppState;
use crate::caller::RequestIdentity;
use crate::extract::{JsonBody, PathSegment};
use crate::find_run::{ListedRun, find_run, load_run};
use crate::keys::{IdempotencyKeys, KeyedRequest};
use crate::node_names;
use crate::problem::ApiError;

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/v1/runs/{run}/start", post(start))
        .route("/api/v1/runs/{run}/skip", post(skip))
        .route("/api/v1/runs/{run}/stop", post(stop))
        .route("/api/v1/runs/{run}/kill", post(kill))
        .route("/api/v1/runs/{run}/signal", post(signal))
        .route("/api/v1/runs/{run}/mark", post(mark))
        .route("/api/v1/runs/{run}/rerun", post(rerun))
}

/// Asks for something to be done with a run, and answers with what it is then.
async fn operate(
    app: &AppState,
    actor: Actor,
    name: &str,
    command: impl FnOnce(RunId) -> Command,
) -> Result<Json<RunSummary>, ApiError> {
    let id = find_run(&*app.store, name).await?.id;
    app.ask(actor, command(id)).await?;
    let run = load_run(&*app.store, id).await?.ok_or(Rejection::NoRun(id))?;
    Ok(Json(node_names::tell(&*app.store, &ListedRun::Run(run)).await?))
}

/// Starts a run that waits: first for its time, then for whatever else it waits for.
#[utoipa::path(post, path = "/api/v1/runs/{run}/start", tag = "runs",
    params(("run" = String, Path, description = "Its id, `job#number`, or a job for its latest run that is not only planned")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn start(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
) -> Result<Json<RunSummary>, ApiError> {
    operate(&app, actor, &name, |run| Command::Start { run }).await
}

/// Skips a run that has not started.
#[utoipa::path(post, path = "/api/v1/runs/{run}/skip", tag = "runs", request_body = SkipBody,
    params(("run" = String, Path, description = "Its id, `job#number`, or a job for its latest run that is not only planned")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn skip(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
    JsonBody(SkipBody { why }): JsonBody<SkipBody>,
) -> Result<Json<RunSummary>, ApiError> {
    operate(&app, actor, &name, |run| Command::Skip { run, why }).await
}

/// Ends a run's program: its signal, time to obey, then SIGKILL.
#[utoipa::path(post, path = "/api/v1/runs/{run}/stop", tag = "runs",
    params(("run" = String, Path, description = "Its id, `job#number`, or a job for its latest run that is not only planned")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn stop(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
) -> Result<Json<RunSummary>, ApiError> {
    operate(&app, actor, &name, |run| Command::Stop { run }).await
}

/// Sends SIGKILL to a run's program.
#[utoipa::path(post, path = "/api/v1/runs/{run}/kill", tag = "runs",
    params(("run" = String, Path, description = "Its id, `job#number`, or a job for its latest run that is not only planned")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn kill(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
) -> Result<Json<RunSummary>, ApiError> {
    operate(&app, actor, &name, |run| Command::Signal { run, signal: Signal::KILL }).await
}

/// Sends a run's program a signal.
#[utoipa::path(post, path = "/api/v1/runs/{run}/signal", tag = "runs", request_body = SignalBody,
    params(("run" = String, Path, description = "Its id, `job#number`, or a job for its latest run that is not only planned")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn signal(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
    JsonBody(SignalBody { signal }): JsonBody<SignalBody>,
) -> Result<Json<RunSummary>, ApiError> {
    let signal = Signal::parse(&signal).map_err(|error| ApiError::unreadable(ProblemCode::Invalid, error))?;
    operate(&app, actor, &name, |run| Command::Signal { run, signal }).await
}

/// Gives a finished run another finished state.
#[utoipa::path(post, path = "/api/v1/runs/{run}/mark", tag = "runs", request_body = MarkBody,
    params(("run" = String, Path, description = "Its id, `job#number`, or a job for its latest run that is not only planned")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn mark(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
    JsonBody(MarkBody { state, why }): JsonBody<MarkBody>,
) -> Result<Json<RunSummary>, ApiError> {
    operate(&app, actor, &name, |run| Command::Mark { run, state, why }).await
}

/// Makes a finished run once more.
#[utoipa::path(post, path = "/api/v1/runs/{run}/rerun", tag = "runs", request_body = RerunBody,
    params(
        ("run" = String, Path, description = "Its id, `job#number`, or a job for its latest run that is not only planned"),
        ("Idempotency-Key" = Option<String>, Header, description = "Asked for twice under one key, it is one run"),
    ),
    responses(
        (status = 200, description = "It was made before", body = CreatedRun),
        (status = 201, description = "Made", body = CreatedRun),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn rerun(
    State(app): State<Arc<AppState>>,
    Extension(keys): Extension<Arc<IdempotencyKeys>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
    headers: HeaderMap,
    JsonBody(RerunBody { anew }): JsonBody<RerunBody>,
) -> Result<Response, ApiError> {
    let old = find_run(&*app.store, &name).await?;
    let id = match key(&headers)? {
        None => app.node.random_run_id(),
        Some(key) => {
            // As it was asked: the latest run of a job is another one the second time.
            let keyed = KeyedRequest { job: &old.job, what: &name, key };
            keys.id(&keyed, app.clock.now(), &*app.store).await?
        }
    };
    let command = Command::Rerun { run: old.id, id, anew };
    ask_for_run(&app, actor, old.job.clone(), id, command).await
}

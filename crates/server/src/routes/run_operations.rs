//! Operations on a run. Each sends one command to the node; the core decides whether the state of the run allows it.
//! The response is the run after the operation.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use cronhold_api::{CreatedRun, MarkBody, Problem, ProblemCode, RerunBody, RunSummary, SignalBody, SkipBody};
use cronhold_core::RunId;
use cronhold_core::command::Command;
use cronhold_core::decision::Rejection;
use cronhold_core::record::Actor;
use cronhold_core::signal::Signal;

use super::runs::{create_run, key, once_for_key};
use crate::AppState;
use crate::caller::RequestIdentity;
use crate::extract::{JsonBody, PathSegment};
use crate::find_run::{JobRunChoice, ListedRun, find_run, find_unreadable_run, load_run};
use crate::keys::KeyedRequest;
use crate::node_names;
use crate::problem::ApiError;

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

/// Sends a command about a run, and returns the run after it.
async fn operate(
    app: &AppState,
    actor: Actor,
    name: &str,
    choice: JobRunChoice,
    command: impl FnOnce(RunId) -> Command,
) -> Result<Json<RunSummary>, ApiError> {
    let id = find_run(&*app.store, name, choice).await?.id;
    app.request(actor, command(id)).await?;
    summary(app, id).await
}

/// The response with a run.
async fn summary(app: &AppState, id: RunId) -> Result<Json<RunSummary>, ApiError> {
    let run = load_run(&*app.store, id).await?.ok_or(Rejection::NoRun(id))?;
    Ok(Json(node_names::summary(&*app.store, &ListedRun::Run(run)).await?))
}

/// Start a scheduled or waiting run now
///
/// A scheduled run no longer waits for its time. A waiting run no longer waits for its conditions.
#[utoipa::path(post, path = "/api/v1/runs/{run}/start", tag = "runs",
    params(("run" = String, Path,
        description = "Run id, `job#number`, or a job id for its first run that has not started")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn start(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
) -> Result<Json<RunSummary>, ApiError> {
    operate(&app, actor, &name, JobRunChoice::Unstarted, |run| Command::Start { run }).await
}

/// Skip a run that has not started
#[utoipa::path(post, path = "/api/v1/runs/{run}/skip", tag = "runs", request_body = SkipBody,
    params(("run" = String, Path,
        description = "Run id, `job#number`, or a job id for its first run that has not started")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn skip(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
    JsonBody(SkipBody { why }): JsonBody<SkipBody>,
) -> Result<Json<RunSummary>, ApiError> {
    operate(&app, actor, &name, JobRunChoice::Unstarted, |run| Command::Skip { run, why }).await
}

/// Stop a run
///
/// Sends the stop signal of the job to the program, and SIGKILL if the program has not ended after the grace period.
#[utoipa::path(post, path = "/api/v1/runs/{run}/stop", tag = "runs",
    params(("run" = String, Path,
        description = "Run id, `job#number`, or a job id for its only running run, else the last one that started")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn stop(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
) -> Result<Json<RunSummary>, ApiError> {
    operate(&app, actor, &name, JobRunChoice::OnlyRunning, |run| Command::Stop { run }).await
}

/// Kill a run
///
/// Sends SIGKILL to the program.
#[utoipa::path(post, path = "/api/v1/runs/{run}/kill", tag = "runs",
    params(("run" = String, Path,
        description = "Run id, `job#number`, or a job id for its only running run, else the last one that started")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn kill(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
) -> Result<Json<RunSummary>, ApiError> {
    operate(&app, actor, &name, JobRunChoice::OnlyRunning, |run| Command::Signal { run, signal: Signal::KILL }).await
}

/// Send a signal to the program of a run
#[utoipa::path(post, path = "/api/v1/runs/{run}/signal", tag = "runs", request_body = SignalBody,
    params(("run" = String, Path,
        description = "Run id, `job#number`, or a job id for its only running run, else the last one that started")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn signal(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
    JsonBody(SignalBody { signal }): JsonBody<SignalBody>,
) -> Result<Json<RunSummary>, ApiError> {
    let signal = Signal::parse(&signal).map_err(|error| ApiError::unreadable(ProblemCode::Invalid, error))?;
    operate(&app, actor, &name, JobRunChoice::OnlyRunning, |run| Command::Signal { run, signal }).await
}

/// Mark a finished run with another finished state
///
/// Also ends an unfinished run whose record cannot be read, by its id. If this node still has its program, it is killed.
#[utoipa::path(post, path = "/api/v1/runs/{run}/mark", tag = "runs", request_body = MarkBody,
    params(("run" = String, Path,
        description = "Run id, `job#number`, or a job id for its running run, else the last one that started")),
    responses((status = 200, body = RunSummary), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn mark(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
    JsonBody(MarkBody { state, why }): JsonBody<MarkBody>,
) -> Result<Json<RunSummary>, ApiError> {
    let (id, command) = match find_run(&*app.store, &name, JobRunChoice::Current).await {
        Ok(run) => (run.id, Command::Mark { run: run.id, state, why }),
        Err(error) => match find_unreadable_run(&*app.store, &name, &error).await? {
            Some((run, job)) => (run, Command::EndUnreadable { job, run, state, why }),
            None => return Err(error),
        },
    };
    app.ensure(actor, command).await?;
    summary(&app, id).await
}

/// Rerun a finished run
#[utoipa::path(post, path = "/api/v1/runs/{run}/rerun", tag = "runs", request_body = RerunBody,
    params(
        ("run" = String, Path,
            description = "Run id, `job#number`, or a job id for its running run, else the last one that started"),
        ("Idempotency-Key" = Option<String>, Header, description = "Requests with the same key within 24 hours create only one run"),
    ),
    responses(
        (status = 200, description = "A run with this key already existed", body = CreatedRun),
        (status = 201, description = "Created", body = CreatedRun),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn rerun(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
    headers: HeaderMap,
    JsonBody(RerunBody { current }): JsonBody<RerunBody>,
) -> Result<Response, ApiError> {
    let old = find_run(&*app.store, &name, JobRunChoice::Current).await?;
    let id = app.node.random_run_id();
    // The key refers to the name in the request: the latest run of a job changes between two requests.
    let keyed = key(&headers)?.map(|key| KeyedRequest { job: &old.job, what: &name, key, at: None });
    let command = once_for_key(keyed.as_ref(), Command::Rerun { run: old.id, id, current });
    create_run(&app, actor, old.job.clone(), id, command).await
}

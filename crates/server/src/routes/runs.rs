//! Runs: the list, one of them with every step it took, and making one.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use cronhold_api::{CreatedRun, Problem, ProblemCode, RunBody, RunDetail, RunList, RunStep};
use cronhold_core::command::Command;
use cronhold_core::decision::{CommandReply, Rejection};
use cronhold_core::record::{Actor, CommandLine, ResolvedProgram};
use cronhold_core::{JobId, RunId, State as RunState};
use cronhold_schedule::{Instant, TextError};
use cronhold_store::{Query, RunQuery};
use serde::Deserialize;

use crate::AppState;
use crate::caller::RequestIdentity;
use crate::extract::{JobIdPath, JsonBody, PathSegment, QueryParams, limit};
use crate::find_run::{ListedRun, find_listed_run, is_job, load_run};
use crate::keys::{IdempotencyKeys, KeyedRequest};
use crate::node_names::{self, NodeNames};
use crate::problem::ApiError;

/// The header under which one run is asked for several times.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Longest key in bytes.
const KEY_MAX: usize = 255;

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/v1/runs", get(list))
        .route("/api/v1/runs/{run}", get(show))
        .route("/api/v1/jobs/{id}/runs", post(make))
        .merge(super::run_operations::router())
        .layer(Extension(Arc::new(IdempotencyKeys::default())))
}

/// Which runs are asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsQuery {
    job: Option<String>,
    state: Option<String>,
    since: Option<String>,
    before: Option<String>,
    limit: Option<usize>,
}

/// Runs, the latest first.
#[utoipa::path(get, path = "/api/v1/runs", tag = "runs",
    params(
        ("job" = Option<String>, Query, description = "Only of this job"),
        ("state" = Option<String>, Query, description = "Only in one of these states, with commas between them"),
        ("since" = Option<String>, Query, description = "Only for this time or a later one"),
        ("before" = Option<String>, Query, description = "Only with an id below this: `next` of the page before"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000, description = "How many"),
    ),
    responses((status = 200, body = RunList), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn list(
    State(app): State<Arc<AppState>>,
    QueryParams(which): QueryParams<RunsQuery>,
) -> Result<Json<RunList>, ApiError> {
    let (query, limit) = (which.query()?, limit(which.limit)?);
    let job = query.job.clone();
    let page = app.store.page(&Query::Runs(query), limit).await?;
    let next = page.next(limit).and_then(|key| key.run_list_id()).map(|last| last.to_string());
    let runs: Vec<ListedRun> = page.records.into_iter().filter_map(ListedRun::of).collect();
    if let Some(job) = job.filter(|_| runs.is_empty()) {
        known(&app, job).await?;
    }
    let names = NodeNames::of(&*app.store, &runs).await?;
    let runs = runs.iter().map(|run| names.tell(run)).collect();
    Ok(Json(RunList { runs, next, unreadable: page.unreadable }))
}

impl RunsQuery {
    fn query(&self) -> Result<RunQuery, ApiError> {
        let states = self.state.as_deref().unwrap_or_default().split(',').map(str::trim);
        let states = states.filter(|state| !state.is_empty()).map(RunState::parse).collect::<Result<_, _>>();
        Ok(RunQuery {
            job: read("job", self.job.as_deref(), JobId::parse)?,
            number: None,
            states: states.map_err(|error| wrong("state", error))?,
            since: read("since", self.since.as_deref(), Instant::parse)?,
            before: read("before", self.before.as_deref(), RunId::parse)?,
        })
    }
}

/// Reads a parameter.
pub(super) fn read<T>(
    name: &str,
    text: Option<&str>,
    parse: impl FnOnce(&str) -> Result<T, TextError>,
) -> Result<Option<T>, ApiError> {
    text.map(parse).transpose().map_err(|error| wrong(name, error))
}

fn wrong(name: &str, mut error: TextError) -> ApiError {
    error.message = format!("`{name}`: {}", error.message);
    ApiError::unreadable(ProblemCode::BadRequest, error)
}

/// There is such a job, or there was one: its runs outlive it.
async fn known(app: &AppState, job: JobId) -> Result<(), ApiError> {
    let of_job = RunQuery { job: Some(job.clone()), ..RunQuery::default() };
    if is_job(&*app.store, &job).await? || !app.store.page(&Query::Runs(of_job), 1).await?.records.is_empty() {
        return Ok(());
    }
    Err(Rejection::NoJob(job).into())
}

/// One run with every step it took.
#[utoipa::path(get, path = "/api/v1/runs/{run}", tag = "runs",
    params(("run" = String, Path, description = "Its id, `job#number`, or a job for its latest run that is not only planned")),
    responses((status = 200, body = RunDetail), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn show(
    State(app): State<Arc<AppState>>,
    PathSegment(name): PathSegment,
) -> Result<Json<RunDetail>, ApiError> {
    let listed = find_listed_run(&*app.store, &name).await?;
    let told = node_names::tell(&*app.store, &listed).await?;
    let run = listed.to_run();
    let log = run.log.iter().map(|entry| RunStep {
        at: entry.at,
        state: entry.state,
        actor: entry.actor.to_string(),
        message: entry.message.clone(),
    });
    Ok(Json(RunDetail {
        run: told,
        schedule: run.schedule.as_ref().map(ToString::to_string),
        command: run.work.as_ref().map(command),
        lock: run.lock.as_ref().map(ToString::to_string),
        log: log.collect(),
    }))
}

/// What a run executes, in one line. Lines of a shell are separated as they are written, by line ends.
fn command(work: &ResolvedProgram) -> String {
    match work {
        ResolvedProgram::Noop(span) if span.is_zero() => "noop".to_owned(),
        ResolvedProgram::Noop(span) => format!("noop for {span}"),
        ResolvedProgram::Process(process) => match &process.command {
            CommandLine::Shell { text, .. } => text.clone(),
            CommandLine::Exec(words) => words.join(" "),
        },
        ResolvedProgram::Unsupported(kind) => kind.clone(),
    }
}

/// Makes a run.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/runs", tag = "runs",
    params(
        ("id" = String, Path, description = "The job's id"),
        ("Idempotency-Key" = Option<String>, Header, description = "Asked for twice under one key, it is one run"),
    ),
    request_body = RunBody,
    responses(
        (status = 200, description = "It was made before", body = CreatedRun),
        (status = 201, description = "Made", body = CreatedRun),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn make(
    State(app): State<Arc<AppState>>,
    Extension(keys): Extension<Arc<IdempotencyKeys>>,
    RequestIdentity(actor): RequestIdentity,
    JobIdPath(job): JobIdPath,
    headers: HeaderMap,
    JsonBody(RunBody { args, at }): JsonBody<RunBody>,
) -> Result<Response, ApiError> {
    let id = match (key(&headers)?, at) {
        (None, None) => app.node.random_run_id(),
        (None, Some(at)) => with_time(at, app.node.random_run_id()),
        (Some(key), Some(at)) => KeyedRequest { job: &job, what: "run", key }.id(at),
        (Some(key), None) => {
            keys.id(&KeyedRequest { job: &job, what: "run", key }, app.clock.now(), &*app.store).await?
        }
    };
    let command = Command::Run { job: job.clone(), args, id, at };
    ask_for_run(&app, actor, job, id, command).await
}

/// An id with the time that a run is for, so that it stands in its place in lists.
fn with_time(at: Instant, random: RunId) -> RunId {
    let mut own = [0; 10];
    own.copy_from_slice(&random.bits().to_be_bytes()[6..]);
    RunId::from_random(at, own)
}

/// The key under which something is asked for.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let text = key.to_str().ok().filter(|key| (1..=KEY_MAX).contains(&key.len()));
    text.map(Some).ok_or_else(|| {
        ApiError::new(ProblemCode::BadRequest, format!("`Idempotency-Key` must have 1 to {KEY_MAX} plain letters"))
    })
}

/// Asks for a run with an id, and says whether it was there before.
pub(super) async fn ask_for_run(
    app: &AppState,
    actor: Actor,
    job: JobId,
    id: RunId,
    command: Command,
) -> Result<Response, ApiError> {
    let was_there = load_run(&*app.store, id).await?.is_some();
    let answer = app.ask(actor, command).await?;
    let CommandReply::Run { id, number } = answer else {
        return Err(ApiError::new(ProblemCode::Internal, "a run was asked for, and the answer is something else"));
    };
    let status = if was_there { StatusCode::OK } else { StatusCode::CREATED };
    let place = [(header::LOCATION, format!("{}/runs/{id}", cronhold_api::BASE))];
    let made = CreatedRun { id: id.to_string(), job: job.to_string(), number: number.0 };
    Ok((status, place, Json(made)).into_response())
}

#[cfg(test)]
mod tests;

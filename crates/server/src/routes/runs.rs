//! The list of runs, one run in detail, and the creation of a run.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use cronhold_api::{
    ActionSummary, CreatedRun, Problem, ProblemCode, ProgressSummary, RunBody, RunDetail, RunList, RunStep,
    RunTriggerSummary, ServiceResponse, StderrRanges,
};
use cronhold_core::command::{Command, StopTime};
use cronhold_core::decision::{CommandReply, Rejection};
use cronhold_core::record::{ActionId, Actor, CommandLine, Record, RecordKey, ResolvedProgram};
use cronhold_core::{JobId, RunId, State as RunState};
use cronhold_schedule::{Instant, Span, TextError};
use cronhold_store::{Query, RunQuery, load_readable};
use serde::Deserialize;

use crate::AppState;
use crate::caller::RequestIdentity;
use crate::describe::unreadable_items;
use crate::extract::{JobIdPath, JsonBody, PathSegment, QueryParams, limit};
use crate::find_run::{JobRunChoice, ListedRun, find_listed_run, is_job, load_run};
use crate::keys::KeyedRequest;
use crate::node_names::{self, NodeNames};
use crate::problem::ApiError;

/// Header with the key that identifies repeated requests for one run.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Maximum length of a key, in bytes.
const KEY_MAX: usize = 255;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/v1/runs", get(list))
        .route("/api/v1/runs/{run}", get(show))
        .route("/api/v1/jobs/{id}/runs", post(create))
        .merge(super::ad_hoc_runs::router())
        .merge(super::run_operations::router())
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsQuery {
    job: Option<String>,
    state: Option<String>,
    since: Option<String>,
    before: Option<String>,
    limit: Option<usize>,
}

/// List runs, latest first
#[utoipa::path(get, path = "/api/v1/runs", tag = "runs",
    params(
        ("job" = Option<String>, Query, description = "Job id"),
        ("state" = Option<String>, Query, description = "States of the runs, separated by commas"),
        ("since" = Option<String>, Query, description = "Only runs that had not ended before this time, whatever their nominal time"),
        ("before" = Option<String>, Query,
            description = "Only runs with an id before this one: `next` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000,
            description = "Maximum number of runs; default: 50"),
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
        check_known(&app, job).await?;
    }
    let unreadable = unreadable_items(&app, &page.unreadable);
    let names = NodeNames::of(&*app.store, &runs).await?;
    let runs = runs.iter().map(|run| names.summary(run)).collect();
    Ok(Json(RunList { runs, next, unreadable }))
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

/// Parses a parameter.
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

/// Fails if the job neither exists nor has runs. Runs outlive their job.
async fn check_known(app: &AppState, job: JobId) -> Result<(), ApiError> {
    let of_job = RunQuery { job: Some(job.clone()), ..RunQuery::default() };
    if is_job(&*app.store, &job).await? || !app.store.page(&Query::Runs(of_job), 1).await?.records.is_empty() {
        return Ok(());
    }
    Err(Rejection::NoJob(job).into())
}

/// Get a run, with its log of state changes and its actions
#[utoipa::path(get, path = "/api/v1/runs/{run}", tag = "runs",
    params(("run" = String, Path,
        description = "Run id, `job#number`, or a job id for its running run, else the last one that started")),
    responses((status = 200, body = RunDetail), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn show(
    State(app): State<Arc<AppState>>,
    PathSegment(name): PathSegment,
) -> Result<Json<RunDetail>, ApiError> {
    let listed = find_listed_run(&*app.store, &name, JobRunChoice::Current).await?;
    let summary = node_names::summary(&*app.store, &listed).await?;
    let run = listed.to_run();
    let log = run.log.iter().map(|entry| RunStep {
        at: entry.at,
        state: entry.state,
        actor: entry.actor.to_string(),
        message: entry.message.clone(),
    });
    Ok(Json(RunDetail {
        run: summary,
        schedule: run.schedule.as_ref().map(ToString::to_string),
        command: run.work.as_ref().map(command),
        lock: run.lock.as_ref().map(ToString::to_string),
        log: log.collect(),
        actions: actions(&app, run.id, run.actions).await?,
        triggers: run.triggers.iter().map(RunTriggerSummary::from).collect(),
        task: run.remote_task().map(ToOwned::to_owned),
        stderr: run.written.as_ref().and_then(|written| written.stderr.as_ref()).map(StderrRanges::from),
        response: run.service.as_ref().and_then(|service| service.response.as_ref()).map(ServiceResponse::from),
        progress: run.service.as_ref().and_then(|service| service.progress.as_ref()).map(ProgressSummary::from),
    }))
}

/// The actions of a run. Those that cannot be read are left out.
async fn actions(app: &AppState, run: RunId, count: u32) -> Result<Vec<ActionSummary>, ApiError> {
    let keys: Vec<RecordKey> = (0..count).map(|number| RecordKey::Action(ActionId::new(run, number))).collect();
    let found = load_readable(&*app.store, &keys).await?.records;
    let actions = found.into_iter().filter_map(|(_, stored)| match stored?.record {
        Record::Action(action) => Some(ActionSummary::from(&*action)),
        _ => None,
    });
    Ok(actions.collect())
}

/// The program of a run as text. A shell script keeps its line breaks.
fn command(work: &ResolvedProgram) -> String {
    match work {
        ResolvedProgram::Noop(span) if span.is_zero() => "noop".to_owned(),
        ResolvedProgram::Noop(span) => format!("noop for {span}"),
        ResolvedProgram::Process(process) => match &process.command {
            CommandLine::Shell { text, .. } => text.clone(),
            CommandLine::Exec(words) => words.join(" "),
        },
        ResolvedProgram::Http(http) => format!("{} {}", http.request.method, http.request.url),
        ResolvedProgram::Remote(remote) => format!("remote: {} {}", remote.start.method, remote.start.url),
        ResolvedProgram::Task(task) => task.text(),
        ResolvedProgram::Unsupported(kind) => kind.clone(),
    }
}

/// Create a run of a job
#[utoipa::path(post, path = "/api/v1/jobs/{id}/runs", tag = "runs",
    params(
        ("id" = String, Path, description = "Job id"),
        ("Idempotency-Key" = Option<String>, Header, description = "Requests with the same key within 24 hours create only one run"),
    ),
    request_body = RunBody,
    responses(
        (status = 200, description = "A run with this key already existed", body = CreatedRun),
        (status = 201, description = "Created", body = CreatedRun),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn create(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    JobIdPath(job): JobIdPath,
    headers: HeaderMap,
    JsonBody(RunBody { args, at, stop_at, stop_after }): JsonBody<RunBody>,
) -> Result<Response, ApiError> {
    let keyed = key(&headers)?.map(|key| KeyedRequest { job: &job, what: "run", key, at });
    let id = requested_id(&app, keyed.as_ref(), at);
    let command = Command::Run { job: job.clone(), args, id, at, stop: stop_time(stop_at, stop_after)? };
    let command = once_for_key(keyed.as_ref(), command);
    create_run(&app, actor, job, id, command).await
}

/// When a requested run is stopped.
pub(super) fn stop_time(at: Option<Instant>, after: Option<Span>) -> Result<Option<StopTime>, ApiError> {
    match (at, after) {
        (Some(_), Some(_)) => Err(ApiError::new(ProblemCode::Invalid, "`stop_at` and `stop_after` exclude each other")
            .hint("remove one of them")),
        (at, after) => Ok(at.map(StopTime::At).or(after.map(StopTime::After))),
    }
}

/// The id of a requested run. With a time, the same key gives the same id.
pub(super) fn requested_id(app: &AppState, keyed: Option<&KeyedRequest<'_>>, at: Option<Instant>) -> RunId {
    match (keyed, at) {
        (_, None) => app.node.random_run_id(),
        (None, Some(at)) => with_time(at, app.node.random_run_id()),
        (Some(keyed), Some(at)) => keyed.id(at),
    }
}

/// The command of a request, which takes effect once for its key if the request has one.
pub(super) fn once_for_key(keyed: Option<&KeyedRequest<'_>>, command: Command) -> Command {
    match keyed {
        Some(keyed) => keyed.once(command),
        None => command,
    }
}

/// A random id that begins with the time of the run, so that lists show the run in order.
fn with_time(at: Instant, random: RunId) -> RunId {
    let mut own = [0; 10];
    own.copy_from_slice(&random.bits().to_be_bytes()[6..]);
    RunId::from_random(at, own)
}

/// The idempotency key of a request; `None` if it has none.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let text = key.to_str().ok().filter(|key| (1..=KEY_MAX).contains(&key.len()));
    text.map(Some).ok_or_else(|| {
        ApiError::new(ProblemCode::BadRequest, format!("`Idempotency-Key` must have 1 to {KEY_MAX} ASCII characters"))
    })
}

/// Creates a run with an id. The status of the response shows whether the run is new.
pub(super) async fn create_run(
    app: &AppState,
    actor: Actor,
    job: JobId,
    id: RunId,
    command: Command,
) -> Result<Response, ApiError> {
    let existed = load_run(&*app.store, id).await?.is_some();
    let reply = app.request(actor, command).await?;
    let CommandReply::Run { id: created, number } = reply else {
        return Err(ApiError::new(ProblemCode::Internal, "unexpected reply of the node to the creation of a run"));
    };
    // The run of an earlier request with the same key has another id.
    let status = if existed || created != id { StatusCode::OK } else { StatusCode::CREATED };
    let location = [(header::LOCATION, format!("{}/runs/{created}", cronhold_api::BASE))];
    let job = if job.is_ad_hoc() { JobId::of_ad_hoc_run(created) } else { job };
    let created = CreatedRun { id: created.to_string(), job: job.to_string(), number: number.0 };
    Ok((status, location, Json(created)).into_response())
}

#[cfg(test)]
mod tests;

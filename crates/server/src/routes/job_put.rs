//! A job is put: made, or changed as a whole. Its body is a job file in all but name, and is read by what reads job
//! files, so that the same mistakes are found at the same places.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use cronhold_api::{JobDetail, Problem, ProblemCode};
use cronhold_core::command::{Command, Precondition};
use cronhold_core::decision::Rejection;
use cronhold_core::record::{JobSource, RecordKey};
use cronhold_core::{DecisionContext, Job, JobId, JobUid};
use cronhold_jobfile::directory::{CheckContext, LoadedJob, check};
use cronhold_jobfile::{Mistake, Options, read_job, render_line};
use cronhold_store::{Fault, Query};
use serde::de::IgnoredAny;

use super::jobs::{find, told};
use crate::AppState;
use crate::caller::RequestIdentity;
use crate::extract::{JobIdPath, kind, whole};
use crate::problem::ApiError;

/// Ids that are read at once.
const PAGE: usize = 1_000;
/// Ids that are read to see whether a job that is named in another is there.
const IDS_MAX: usize = 200_000;
/// Mistakes that are told; the others come to light when these are gone.
const TOLD_MAX: usize = 50;

/// Makes or changes a job.
#[utoipa::path(put, path = "/api/v1/jobs/{id}", tag = "jobs",
    params(
        ("id" = String, Path, description = "The job's id"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if there is no such job"),
        ("If-Match" = Option<String>, Header,
            description = "An ETag: only if the job is still so; `*`: only if it is there"),
    ),
    request_body(content(
        (Object = "application/json"),
        (String = "application/yaml"),
    ), description = "The job, with the keys of a job file"),
    responses(
        (status = 200, description = "Changed, or as it was", body = JobDetail),
        (status = 201, description = "Made", body = JobDetail),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn put(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    JobIdPath(id): JobIdPath,
    request: Request,
) -> Result<Response, ApiError> {
    let provided = provided(request.headers())?;
    let is_json = is_json(request.headers())?;
    let bytes = whole(request, &()).await?;
    if is_json {
        let read: Result<IgnoredAny, _> = serde_json::from_slice(&bytes);
        read.map_err(|error| ApiError::new(ProblemCode::BadRequest, format!("the body is not JSON: {error}")))?;
    }
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| ApiError::new(ProblemCode::BadRequest, format!("the body is not text: {error}")))?;
    let job = read(&app, &id, text).await?;
    let uid = new_uid(&app);
    let command = Command::PutJob { id: id.clone(), job, source: JobSource::Api, uid, provided };
    app.ask(actor, command).await?;
    // Someone may have removed it since.
    let record = find(&app, &id).await?.ok_or(Rejection::NoJob(id))?;
    let mut response = told(&app, &record).await?;
    if record.uid == uid && record.revision == 1 {
        *response.status_mut() = StatusCode::CREATED;
    }
    Ok(response)
}

/// What tells a new job apart from all others. An id of a run is as unique as that has to be.
pub(super) fn new_uid(app: &AppState) -> JobUid {
    JobUid::parse(&app.node.random_run_id().to_string()).expect("both are 32 hexadecimal digits")
}

/// Which job has to be there, as the headers say.
fn provided(headers: &HeaderMap) -> Result<Precondition, ApiError> {
    let bad = |detail: &str| ApiError::new(ProblemCode::BadRequest, detail);
    match (headers.get(header::IF_MATCH), headers.get(header::IF_NONE_MATCH)) {
        (None, None) => Ok(Precondition::Any),
        (Some(tag), None) => seen(tag),
        (None, Some(tag)) if tag == "*" => Ok(Precondition::New),
        (None, Some(_)) => Err(bad("`If-None-Match` can only be `*` here")),
        (Some(_), Some(_)) => Err(bad("`If-Match` and `If-None-Match` contradict each other")),
    }
}

/// The job that `If-Match` stands for.
pub(super) fn seen(tag: &HeaderValue) -> Result<Precondition, ApiError> {
    let read = |tag: &str| {
        if tag == "*" {
            return Some(Precondition::There);
        }
        let (uid, revision) = tag.strip_prefix('"')?.strip_suffix('"')?.rsplit_once('-')?;
        Some(Precondition::As { uid: JobUid::parse(uid).ok()?, revision: revision.parse().ok()? })
    };
    let read = tag.to_str().ok().and_then(|tag| read(tag.trim()));
    read.ok_or_else(|| ApiError::new(ProblemCode::BadRequest, "`If-Match` must be `*` or one ETag as a job has it"))
}

fn is_json(headers: &HeaderMap) -> Result<bool, ApiError> {
    match kind(headers) {
        Some(kind) => Ok(kind.ends_with("json")),
        None => Err(ApiError::new(ProblemCode::UnsupportedMediaType, "it must be said what the body is")
            .hint("send it with `Content-Type: application/json` or `application/yaml`")),
    }
}

/// The job that a text is, or everything that is wrong with it.
async fn read(app: &AppState, id: &JobId, text: &str) -> Result<Arc<Job>, ApiError> {
    let world = (app.world)();
    let read = read_job(id.as_str(), text, &Options { zones: &world.zones });
    let Some(job) = read.job else { return Err(wrong(&read.mistakes, text)) };
    let job = Arc::new(job);
    let places = Arc::new(read.places);
    let loaded = LoadedJob { job: Arc::clone(&job), file: id.to_string(), places, root: 0 };
    let jobs = BTreeMap::from([(id.clone(), loaded)]);
    let mut mistakes = look(app, &world, &jobs, &BTreeSet::new());
    if !mistakes.is_empty() {
        // Only now, because most jobs name no others: which others are there?
        mistakes = look(app, &world, &jobs, &known_ids(app).await?);
    }
    if !mistakes.is_empty() {
        return Err(wrong(&mistakes, text));
    }
    Ok(job)
}

fn look(
    app: &AppState,
    world: &DecisionContext,
    jobs: &BTreeMap<JobId, LoadedJob>,
    others: &BTreeSet<JobId>,
) -> Vec<Mistake> {
    let now = app.clock.now();
    check(jobs, others, &CheckContext { zones: &world.zones, zone: &world.zone, calendars: &world.calendars, now })
}

async fn known_ids(app: &AppState) -> Result<BTreeSet<JobId>, Fault> {
    let mut ids = BTreeSet::new();
    let mut after = None;
    while ids.len() < IDS_MAX {
        let page = app.store.page(&Query::Jobs { after }, PAGE).await?;
        let keys = page.records.iter().map(|stored| stored.record.key());
        ids.extend(keys.filter_map(|key| if let RecordKey::Job(id) = key { Some(id) } else { None }));
        after = match page.next(PAGE) {
            Some(RecordKey::Job(last)) => Some(last),
            _ => break,
        };
    }
    Ok(ids)
}

fn wrong(mistakes: &[Mistake], text: &str) -> ApiError {
    let mut told: Vec<String> = mistakes.iter().take(TOLD_MAX).map(|mistake| render_line(mistake, text)).collect();
    if mistakes.len() > TOLD_MAX {
        told.push(format!("and {} more", mistakes.len() - TOLD_MAX));
    }
    ApiError::new(ProblemCode::Invalid, told.join("\n"))
}

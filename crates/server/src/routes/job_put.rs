//! Creates or replaces a job. The body has the format of a job file, and the parser of job files reads it, so that both
//! report the same mistakes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use cronhold_api::{JobDetail, Problem, ProblemCode};
use cronhold_core::command::{Command, Precondition};
use cronhold_core::decision::Rejection;
use cronhold_core::record::{JobSource, RecordKey};
use cronhold_core::{DecisionContext, Job, JobId, JobUid};
use cronhold_jobfile::directory::{CheckContext, LoadedJob, check_one};
use cronhold_jobfile::{Mistake, Options, escape_unprintable, read_job, render_line};
use cronhold_store::{Fault, Query};
use serde::de::IgnoredAny;

use super::jobs::{find, respond_with_job};
use crate::AppState;
use crate::caller::RequestIdentity;
use crate::extract::{JobIdPath, kind, whole};
use crate::problem::ApiError;

/// Number of ids that are read in one page.
const PAGE: usize = 1_000;
/// Maximum number of ids that are read to check whether the jobs that a job refers to exist.
const IDS_MAX: usize = 200_000;
/// Maximum number of mistakes in a response.
const MISTAKES_MAX: usize = 50;

/// Create or replace a job
#[utoipa::path(put, path = "/api/v1/jobs/{id}", tag = "jobs",
    params(
        ("id" = String, Path, description = "Job id"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if the job does not exist"),
        ("If-Match" = Option<String>, Header,
            description = "An ETag: only if the job has not changed; `*`: only if the job exists"),
    ),
    request_body(content(
        (Object = "application/json"),
        (String = "application/yaml"),
    ), description = "Job definition with the keys of a job file"),
    responses(
        (status = 200, description = "Replaced, or unchanged", body = JobDetail),
        (status = 201, description = "Created", body = JobDetail),
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
        .map_err(|error| ApiError::new(ProblemCode::BadRequest, format!("the body is not UTF-8: {error}")))?;
    // JSON may contain characters that YAML rejects.
    let text = if is_json { escape_unprintable(text) } else { Cow::Borrowed(text) };
    let job = read(&app, &id, &text).await?.map_err(|mistakes| wrong(&mistakes, &text))?;
    let uid = new_uid(&app);
    let command = Command::PutJob { id: id.clone(), job, source: JobSource::Api, uid, provided };
    app.request(actor, command).await?;
    // Another client may have removed the job since.
    let record = find(&app, &id).await?.ok_or(Rejection::NoJob(id))?;
    let mut response = respond_with_job(&app, &record).await?;
    if record.uid == uid && record.revision == 1 {
        *response.status_mut() = StatusCode::CREATED;
    }
    Ok(response)
}

/// The unique id of a new job. It is generated like a run id.
pub(super) fn new_uid(app: &AppState) -> JobUid {
    JobUid::parse(&app.node.random_run_id().to_string()).expect("both are 32 hexadecimal digits")
}

/// The precondition of the headers.
fn provided(headers: &HeaderMap) -> Result<Precondition, ApiError> {
    let bad = |detail: &str| ApiError::new(ProblemCode::BadRequest, detail);
    match (headers.get(header::IF_MATCH), headers.get(header::IF_NONE_MATCH)) {
        (None, None) => Ok(Precondition::Any),
        (Some(tag), None) => seen(tag),
        (None, Some(tag)) if tag == "*" => Ok(Precondition::New),
        (None, Some(_)) => Err(bad("`If-None-Match` must be `*`")),
        (Some(_), Some(_)) => Err(bad("`If-Match` and `If-None-Match` cannot be combined")),
    }
}

/// The precondition of an `If-Match` header.
pub(super) fn seen(tag: &HeaderValue) -> Result<Precondition, ApiError> {
    let read = |tag: &str| {
        if tag == "*" {
            return Some(Precondition::There);
        }
        let (uid, revision) = tag.strip_prefix('"')?.strip_suffix('"')?.rsplit_once('-')?;
        Some(Precondition::As { uid: JobUid::parse(uid).ok()?, revision: revision.parse().ok()? })
    };
    let read = tag.to_str().ok().and_then(|tag| read(tag.trim()));
    read.ok_or_else(|| ApiError::new(ProblemCode::BadRequest, "`If-Match` must be `*` or the ETag of a job"))
}

fn is_json(headers: &HeaderMap) -> Result<bool, ApiError> {
    match kind(headers) {
        Some(kind) => Ok(kind.ends_with("json")),
        None => Err(ApiError::new(ProblemCode::UnsupportedMediaType, "the body has no content type")
            .hint("send it with `Content-Type: application/json` or `application/yaml`")),
    }
}

/// Parses and checks a job. The inner error contains all mistakes.
pub(super) async fn read(app: &AppState, id: &JobId, text: &str) -> Result<Result<Arc<Job>, Vec<Mistake>>, Fault> {
    let world = (app.world)();
    let read = read_job(id.as_str(), text, &Options { zones: &world.zones });
    let Some(job) = read.job else { return Ok(Err(read.mistakes)) };
    let job = Arc::new(job);
    let places = Arc::new(read.places);
    let loaded = LoadedJob { job: Arc::clone(&job), file: id.as_str().into(), places };
    let mut mistakes = check_job(app, &world, (id, &loaded), &BTreeSet::new());
    if !mistakes.is_empty() {
        // Most jobs refer to no other jobs, so the ids are loaded only if the check without them fails.
        mistakes = check_job(app, &world, (id, &loaded), &known_ids(app).await?);
    }
    Ok(if mistakes.is_empty() { Ok(job) } else { Err(mistakes) })
}

fn check_job(
    app: &AppState,
    world: &DecisionContext,
    (id, loaded): (&JobId, &LoadedJob),
    others: &BTreeSet<JobId>,
) -> Vec<Mistake> {
    let now = app.clock.now();
    let around = CheckContext { zones: &world.zones, zone: &world.zone, calendars: &world.calendars, now };
    check_one(id, loaded, others, &around)
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
    invalid(mistakes, |mistake| render_line(mistake, text))
}

/// The error of a request with an invalid job, with a line for each mistake.
pub(super) fn invalid(mistakes: &[Mistake], line: impl Fn(&Mistake) -> String) -> ApiError {
    let mut lines: Vec<String> = mistakes.iter().take(MISTAKES_MAX).map(line).collect();
    if mistakes.len() > MISTAKES_MAX {
        lines.push(format!("and {} more", mistakes.len() - MISTAKES_MAX));
    }
    ApiError::new(ProblemCode::Invalid, lines.join("\n"))
}

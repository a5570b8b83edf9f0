//! The list of jobs, and one job in detail.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use cronhold_api::{JobDetail, JobList, Problem};
use cronhold_core::JobId;
use cronhold_core::decision::Rejection;
use cronhold_core::ids::AD_HOC_FOLDER;
use cronhold_core::record::{JobRecord, Record, RecordKey};
use cronhold_store::{Fault, Query, UnreadableRecord, find_job, load_readable};
use serde::Deserialize;

use super::{job_put, job_remove};
use crate::describe::{self, JobFileMistakes, JobSurroundings, unreadable_items};
use crate::extract::{JobIdPath, QueryParams, limit};
use crate::problem::ApiError;
use crate::{AppState, glob};

/// Number of stored jobs that are read in one page.
const PAGE: usize = 500;
/// Maximum number of stored jobs that one request reads. The result of a pattern that few jobs match may need several
/// pages.
const SCANNED_MAX: usize = 20_000;

pub(crate) fn router() -> Router<Arc<AppState>> {
    let one = get(show).put(job_put::put).delete(job_remove::remove);
    Router::new().route("/api/v1/jobs", get(list)).route("/api/v1/jobs/{id}", one)
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobsQuery {
    #[serde(rename = "match")]
    pattern: Option<String>,
    label: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

/// List jobs, ordered by id
#[utoipa::path(get, path = "/api/v1/jobs", tag = "jobs",
    params(
        ("match" = Option<String>, Query,
            description = "Pattern of the ids: `*` matches any characters, `?` matches one. Jobs of ad hoc runs are listed only for a pattern that begins with `adhoc/`"),
        ("label" = Option<String>, Query, description = "Label of the jobs"),
        ("after" = Option<String>, Query,
            description = "Only jobs with an id after this one: `next` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000,
            description = "Maximum number of jobs; default: 50"),
    ),
    responses((status = 200, body = JobList), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn list(
    State(app): State<Arc<AppState>>,
    QueryParams(which): QueryParams<JobsQuery>,
) -> Result<Json<JobList>, ApiError> {
    let limit = limit(which.limit)?;
    let mistakes = JobFileMistakes::now(&app);
    let SelectedJobs { records, read_until, mut unreadable } = gather(&app, &which, limit).await?;
    let around = JobSurroundings::load(&app, &records).await?;
    unreadable.extend(around.unreadable.iter().cloned());
    let unreadable = unreadable_items(&app, &unreadable);
    let mut jobs = Vec::with_capacity(records.len());
    for record in &records {
        jobs.push(describe::job(record, &around, &mistakes));
    }
    for id in only_files(&app, &which, read_until.as_deref(), &mistakes).await? {
        jobs.push(describe::job_of_file(&id, &around, &mistakes));
    }
    jobs.sort_by(|one, other| one.id.cmp(&other.id));
    let is_cut = jobs.len() > limit;
    jobs.truncate(limit);
    let next = if is_cut { jobs.last().map(|job| job.id.clone()) } else { read_until };
    Ok(Json(JobList { jobs, next, pause: around.pause, errors: mistakes.others, unreadable }))
}

/// Stored jobs that match a query.
#[derive(Debug, Default)]
struct SelectedJobs {
    records: Vec<Arc<JobRecord>>,
    /// The last id that was read; `None` if no more jobs follow.
    read_until: Option<String>,
    unreadable: Vec<UnreadableRecord>,
}

/// Reads stored jobs until enough of them match.
async fn gather(app: &AppState, which: &JobsQuery, limit: usize) -> Result<SelectedJobs, ApiError> {
    let mut found = SelectedJobs::default();
    // `after` can be any text, also one that is not a valid job id.
    let mut after = which.after.as_deref().and_then(|after| JobId::parse(after).ok());
    let begins = which.after.as_deref().unwrap_or_default();
    let mut scanned = 0;
    // Reading a job is expensive: without a filter, read no more jobs than the response shows.
    let is_filtered = which.pattern.is_some() || which.label.is_some();
    let size = if is_filtered { PAGE } else { limit.min(PAGE) };
    loop {
        let page = app.store.page(&Query::Jobs { after }, size).await?;
        scanned += size;
        found.unreadable.extend(page.unreadable.iter().cloned());
        for stored in &page.records {
            let Record::Job(record) = &stored.record else { continue };
            if record.id.as_str() > begins && which.matches(record) {
                found.records.push(Arc::clone(record));
                if found.records.len() == limit {
                    // The next page names the others.
                    found.unreadable.retain(|unreadable| unreadable.key.as_ref() <= Some(&stored.record.key()));
                    return Ok(SelectedJobs { read_until: Some(record.id.to_string()), ..found });
                }
            }
        }
        after = match page.next(size) {
            Some(RecordKey::Job(last)) if scanned >= SCANNED_MAX => {
                return Ok(SelectedJobs { read_until: Some(last.to_string()), ..found });
            }
            Some(RecordKey::Job(last)) => Some(last),
            _ => return Ok(found),
        };
    }
}

/// Jobs that only an invalid file defines, within the range of ids that was read.
async fn only_files(
    app: &AppState,
    which: &JobsQuery,
    until: Option<&str>,
    mistakes: &JobFileMistakes,
) -> Result<Vec<JobId>, Fault> {
    if which.label.is_some() {
        // The labels of an invalid file are unknown.
        return Ok(Vec::new());
    }
    let after = which.after.as_deref().unwrap_or_default();
    let ids = mistakes
        .of_jobs
        .keys()
        .filter(|id| id.as_str() > after && until.is_none_or(|until| id.as_str() <= until) && which.matches_id(id));
    let keys: Vec<RecordKey> = ids.cloned().map(RecordKey::Job).collect();
    // The list names unreadable jobs apart.
    let loaded = load_readable(&*app.store, &keys).await?.records;
    let open = loaded.into_iter().filter(|(_, stored)| stored.is_none()).map(|(key, _)| key);
    Ok(open.filter_map(|key| if let RecordKey::Job(id) = key { Some(id) } else { None }).collect())
}

impl JobsQuery {
    fn matches(&self, record: &JobRecord) -> bool {
        let has_label = self.label.as_ref().is_none_or(|label| record.job.labels.contains(label));
        has_label && self.matches_id(&record.id)
    }

    fn matches_id(&self, id: &JobId) -> bool {
        match &self.pattern {
            Some(pattern) => glob::matches(pattern, id.as_str()) && (!id.is_ad_hoc() || shows_ad_hoc(pattern)),
            None => !id.is_ad_hoc(),
        }
    }
}

/// Whether a pattern asks for the jobs of ad hoc runs. Other lists leave them out.
fn shows_ad_hoc(pattern: &str) -> bool {
    pattern.split_once('/').is_some_and(|(folder, _)| folder == AD_HOC_FOLDER)
}

/// Get a job
#[utoipa::path(get, path = "/api/v1/jobs/{id}", tag = "jobs",
    params(("id" = String, Path, description = "Job id")),
    responses((status = 200, body = JobDetail), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn show(State(app): State<Arc<AppState>>, JobIdPath(id): JobIdPath) -> Result<Response, ApiError> {
    let record = find(&app, &id).await?;
    if record.is_none() && JobFileMistakes::now(&app).of_jobs.contains_key(&id) {
        return Err(only_mistakes(&app, &id));
    }
    let record = record.ok_or(Rejection::NoJob(id))?;
    respond_with_job(&app, &record).await
}

/// The response that shows a job, with its ETag.
pub(super) async fn respond_with_job(app: &AppState, record: &Arc<JobRecord>) -> Result<Response, ApiError> {
    let detail = describe::detail(app, record).await?;
    Ok(([(header::ETAG, describe::etag(record))], Json(detail)).into_response())
}

/// Loads a stored job.
pub(super) async fn find(app: &AppState, id: &JobId) -> Result<Option<Arc<JobRecord>>, Fault> {
    find_job(&*app.store, id).await
}

/// The error for a job whose file has never been valid.
fn only_mistakes(app: &AppState, id: &JobId) -> ApiError {
    let mistakes = JobFileMistakes::now(app).of_jobs.remove(id).unwrap_or_default();
    let lines = mistakes.iter().map(|at| format!("{}:{}:{}: {}", at.file, at.line, at.column, at.message));
    let lines = lines.collect::<Vec<_>>().join("\n");
    ApiError::from(Rejection::NoJob(id.clone())).hint(format!("its file is invalid:\n{lines}"))
}

#[cfg(test)]
mod tests;

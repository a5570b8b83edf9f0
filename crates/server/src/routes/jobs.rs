//! Jobs: the list, and one of them with everything that is known of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use cronhold_api::{JobDetail, JobList, Problem};
use cronhold_core::JobId;
use cronhold_core::decision::Rejection;
use cronhold_core::record::{JobRecord, Record, RecordKey};
use cronhold_store::{Fault, Query, find_job};
use serde::Deserialize;

use super::{job_put, job_remove};
use crate::describe::{self, JobFileMistakes, JobSurroundings};
use crate::extract::{JobIdPath, QueryParams, limit};
use crate::problem::ApiError;
use crate::{AppState, glob};

/// Stored jobs that are looked at in one page.
const PAGE: usize = 500;
/// Stored jobs that one request looks at; a pattern that few jobs match is answered in several pages.
const LOOKED_AT_MAX: usize = 20_000;

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    let one = get(show).put(job_put::put).delete(job_remove::remove);
    Router::new().route("/api/v1/jobs", get(list)).route("/api/v1/jobs/{id}", one)
}

/// Which jobs are asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobsQuery {
    #[serde(rename = "match")]
    pattern: Option<String>,
    label: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

/// Jobs by id.
#[utoipa::path(get, path = "/api/v1/jobs", tag = "jobs",
    params(
        ("match" = Option<String>, Query,
            description = "Only ids that look so: `*` stands for anything, `?` for one character"),
        ("label" = Option<String>, Query, description = "Only jobs with this label"),
        ("after" = Option<String>, Query, description = "Only ids after this"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000, description = "How many"),
    ),
    responses((status = 200, body = JobList), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn list(
    State(app): State<Arc<AppState>>,
    QueryParams(which): QueryParams<JobsQuery>,
) -> Result<Json<JobList>, ApiError> {
    let limit = limit(which.limit)?;
    let mistakes = JobFileMistakes::now(&app);
    let SelectedJobs { records, looked_until, mut unreadable } = gather(&app, &which, limit).await?;
    let around = JobSurroundings::load(&app, &records).await?;
    unreadable.extend(around.unreadable.iter().cloned());
    let mut jobs = Vec::with_capacity(records.len());
    for record in &records {
        jobs.push(describe::job(&app, record, &around, &mistakes).await?);
    }
    for id in only_files(&app, &which, looked_until.as_deref(), &mistakes).await? {
        jobs.push(describe::job_of_file(&id, &around, &mistakes));
    }
    jobs.sort_by(|one, other| one.id.cmp(&other.id));
    let is_cut = jobs.len() > limit;
    jobs.truncate(limit);
    let next = if is_cut { jobs.last().map(|job| job.id.clone()) } else { looked_until };
    Ok(Json(JobList { jobs, next, pause: around.pause, errors: mistakes.others, unreadable }))
}

/// Stored jobs that are asked for.
#[derive(Debug, Default)]
struct SelectedJobs {
    records: Vec<Arc<JobRecord>>,
    /// The id up to which they were looked at; nothing, when that was the end.
    looked_until: Option<String>,
    unreadable: Vec<String>,
}

/// Looks at stored jobs until there are enough of them.
async fn gather(app: &AppState, which: &JobsQuery, limit: usize) -> Result<SelectedJobs, ApiError> {
    let mut found = SelectedJobs::default();
    // Any text can be where a page begins, also one that is no job's id.
    let mut after = which.after.as_deref().and_then(|after| JobId::parse(after).ok());
    let begins = which.after.as_deref().unwrap_or_default();
    let mut looked_at = 0;
    // Reading a job costs more than finding it: without a filter no more are read than are told.
    let is_filtered = which.pattern.is_some() || which.label.is_some();
    let size = if is_filtered { PAGE } else { limit.min(PAGE) };
    loop {
        let page = app.store.page(&Query::Jobs { after }, size).await?;
        looked_at += size;
        found.unreadable.extend(page.unreadable.iter().cloned());
        for stored in &page.records {
            let Record::Job(record) = &stored.record else { continue };
            if record.id.as_str() > begins && which.takes(record) {
                found.records.push(Arc::clone(record));
                if found.records.len() == limit {
                    return Ok(SelectedJobs { looked_until: Some(record.id.to_string()), ..found });
                }
            }
        }
        after = match page.next(size) {
            Some(RecordKey::Job(last)) if looked_at >= LOOKED_AT_MAX => {
                return Ok(SelectedJobs { looked_until: Some(last.to_string()), ..found });
            }
            Some(RecordKey::Job(last)) => Some(last),
            _ => return Ok(found),
        };
    }
}

/// Jobs of which there is only a file with mistakes, in the stretch of ids that was looked at.
async fn only_files(
    app: &AppState,
    which: &JobsQuery,
    until: Option<&str>,
    mistakes: &JobFileMistakes,
) -> Result<Vec<JobId>, Fault> {
    if which.label.is_some() {
        // Whatever labels they would have cannot be read.
        return Ok(Vec::new());
    }
    let after = which.after.as_deref().unwrap_or_default();
    let ids = mistakes
        .of_jobs
        .keys()
        .filter(|id| id.as_str() > after && until.is_none_or(|until| id.as_str() <= until) && which.takes_id(id));
    let keys: Vec<RecordKey> = ids.cloned().map(RecordKey::Job).collect();
    let stored: BTreeSet<RecordKey> =
        app.store.load(&keys).await?.into_iter().flatten().map(|stored| stored.record.key()).collect();
    let open = keys.into_iter().filter(|key| !stored.contains(key));
    Ok(open.filter_map(|key| if let RecordKey::Job(id) = key { Some(id) } else { None }).collect())
}

impl JobsQuery {
    fn takes(&self, record: &JobRecord) -> bool {
        let has_label = self.label.as_ref().is_none_or(|label| record.job.labels.contains(label));
        has_label && self.takes_id(&record.id)
    }

    fn takes_id(&self, id: &JobId) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, id.as_str()))
    }
}

/// A job with everything that is known of it.
#[utoipa::path(get, path = "/api/v1/jobs/{id}", tag = "jobs",
    params(("id" = String, Path, description = "The job's id")),
    responses((status = 200, body = JobDetail), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn show(State(app): State<Arc<AppState>>, JobIdPath(id): JobIdPath) -> Result<Response, ApiError> {
    let record = find(&app, &id).await?;
    if record.is_none() && JobFileMistakes::now(&app).of_jobs.contains_key(&id) {
        return Err(only_mistakes(&app, &id));
    }
    let record = record.ok_or(Rejection::NoJob(id))?;
    told(&app, &record).await
}

/// The answer that shows a job.
pub(super) async fn told(app: &AppState, record: &Arc<JobRecord>) -> Result<Response, ApiError> {
    let detail = describe::detail(app, record).await?;
    Ok(([(header::ETAG, describe::etag(record))], Json(detail)).into_response())
}

/// The stored job of that id.
pub(super) async fn find(app: &AppState, id: &JobId) -> Result<Option<Arc<JobRecord>>, Fault> {
    find_job(&*app.store, id).await
}

/// There is no such job, because its file has never been good.
fn only_mistakes(app: &AppState, id: &JobId) -> ApiError {
    let mistakes = JobFileMistakes::now(app).of_jobs.remove(id).unwrap_or_default();
    let told = mistakes.iter().map(|at| format!("{}:{}:{}: {}", at.file, at.line, at.column, at.message));
    let told = told.collect::<Vec<_>>().join("\n");
    ApiError::from(Rejection::NoJob(id.clone())).hint(format!("its file has mistakes:\n{told}"))
}

#[cfg(test)]
mod tests;

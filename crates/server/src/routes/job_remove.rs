//! Removes a job. Its runs are kept, and running programs continue.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use cronhold_api::Problem;
use cronhold_core::JobId;
use cronhold_core::command::{Command, Precondition};
use cronhold_core::record::JobSource;
use cronhold_store::{Fault, find_job};

use super::job_put::seen;
use crate::AppState;
use crate::caller::RequestIdentity;
use crate::extract::JobIdPath;
use crate::problem::ApiError;

/// Remove a job
///
/// The job was created by the command line or the API, or its file no longer exists. Its runs are kept.
#[utoipa::path(delete, path = "/api/v1/jobs/{id}", tag = "jobs",
    params(
        ("id" = String, Path, description = "Job id"),
        ("If-Match" = Option<String>, Header, description = "An ETag: only if the job has not changed"),
    ),
    responses((status = 204), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn remove(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    JobIdPath(id): JobIdPath,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let provided = match headers.get(header::IF_MATCH) {
        Some(tag) => seen(tag)?,
        None => Precondition::Any,
    };
    let source = source(&app, &id).await?;
    app.request(actor, Command::RemoveJob { id, source, provided }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The source that removes a job. If the job belongs to a directory that is no longer read, or that no longer has its
/// file, the request acts for that directory. Otherwise such a job could never be removed.
async fn source(app: &AppState, id: &JobId) -> Result<JobSource, ApiError> {
    let found = match find_job(&*app.store, id).await {
        // A job that cannot be read can be removed.
        Err(Fault::Unreadable(_)) => None,
        found => found?,
    };
    match found {
        Some(job) if matches!(job.source, JobSource::Directory(_)) && !app.files.may_have_file(id) => {
            Ok(job.source.clone())
        }
        _ => Ok(JobSource::Api),
    }
}

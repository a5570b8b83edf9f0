//! Creates ad hoc runs: runs of a job that the request contains and that is not stored among the jobs.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use cronhold_api::{AdHocRunBody, CreatedRun, Problem};
use cronhold_core::JobId;
use cronhold_core::command::Command;
use cronhold_core::ids::AD_HOC_FOLDER;
use cronhold_jobfile::{Mistake, escape_unprintable};
use serde_json::Value;

use super::job_put::{invalid, read};
use super::runs::{create_run, key, once_for_key, requested_id, stop_time};
use crate::AppState;
use crate::caller::RequestIdentity;
use crate::extract::JsonBody;
use crate::keys::KeyedRequest;
use crate::problem::ApiError;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/runs", post(create))
}

/// Create a run of a job that is not stored
///
/// The body contains the job with the keys of a job file, without `schedule`, `triggers` and `paused`. The run is kept,
/// retried and can be run again like any other; its job is `adhoc/` and the run id.
#[utoipa::path(post, path = "/api/v1/runs", tag = "runs",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Requests with the same key within 24 hours create only one run"),
    ),
    request_body = AdHocRunBody,
    responses(
        (status = 200, description = "A run with this key already existed", body = CreatedRun),
        (status = 201, description = "Created", body = CreatedRun),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn create(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    headers: HeaderMap,
    JsonBody(AdHocRunBody { job, args, at, stop_at, stop_after }): JsonBody<AdHocRunBody>,
) -> Result<Response, ApiError> {
    let folder = JobId::parse(AD_HOC_FOLDER).expect("one word");
    let keyed = key(&headers)?.map(|key| KeyedRequest { job: &folder, what: "run", key, at });
    let id = requested_id(&app, keyed.as_ref(), at);
    let job_id = JobId::of_ad_hoc_run(id);
    // JSON may contain characters that YAML rejects.
    let text = Value::Object(job).to_string();
    let job = read(&app, &job_id, &escape_unprintable(&text)).await?;
    let job = job.map_err(|mistakes| invalid(&mistakes, without_place))?;
    let command = Command::RunAdHoc { job, args, id, at, stop: stop_time(stop_at, stop_after)? };
    let command = once_for_key(keyed.as_ref(), command);
    create_run(&app, actor, job_id, id, command).await
}

/// A mistake in a job without its place: the caller has not written the text that was read.
fn without_place(mistake: &Mistake) -> String {
    let hint = mistake.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("`job`: {}{hint}", mistake.message)
}

#[cfg(test)]
mod tests;

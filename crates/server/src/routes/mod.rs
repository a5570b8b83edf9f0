//! All routes, one file per resource. Each file has a `router` with absolute paths.

pub(crate) mod ad_hoc_runs;
pub(crate) mod backfill;
pub(crate) mod chain;
pub(crate) mod channels;
pub(crate) mod coming;
pub(crate) mod control;
pub(crate) mod document;
pub(crate) mod entry;
pub(crate) mod feed;
pub(crate) mod health;
pub(crate) mod holes;
pub(crate) mod job_put;
pub(crate) mod job_remove;
pub(crate) mod job_rename;
pub(crate) mod jobs;
pub(crate) mod metrics;
pub(crate) mod next;
pub(crate) mod nodes;
pub(crate) mod outputs;
pub(crate) mod pauses;
pub(crate) mod peers;
pub(crate) mod pools;
pub(crate) mod queues;
pub(crate) mod reload;
pub(crate) mod run_operations;
pub(crate) mod runs;
pub(crate) mod sidejob;
pub(crate) mod task_store;
pub(crate) mod tasks;
pub(crate) mod triggers;
pub(crate) mod why;

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, Uri};
use cronhold_api::ProblemCode;
use cronhold_schedule::text::shortened;

use crate::problem::ApiError;
use crate::{AppState, page};

#[cfg(test)]
mod tests;

/// All routes, without the guard.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .merge(jobs::router())
        .merge(chain::router())
        .merge(coming::router())
        .merge(job_rename::router())
        .merge(pauses::router())
        .merge(next::router())
        .merge(why::router())
        .merge(backfill::router())
        .merge(holes::router())
        .merge(runs::router())
        .merge(triggers::router())
        .merge(outputs::router())
        .merge(task_store::router())
        .merge(feed::router())
        .merge(nodes::router())
        .merge(peers::router())
        .merge(pools::router())
        .merge(tasks::router())
        .merge(channels::router())
        .merge(queues::router())
        .merge(sidejob::router())
        .merge(reload::router())
        .merge(control::router())
        .merge(entry::router())
        .merge(health::router())
        .merge(metrics::router())
        .merge(document::router())
        .merge(page::router())
        .fallback(no_such_path)
        .method_not_allowed_fallback(method_not_allowed)
}

async fn no_such_path(uri: Uri) -> ApiError {
    ApiError::new(ProblemCode::NotFound, format!("there is no path `{}`", shortened(uri.path())))
        .hint("GET /openapi.json lists all paths; a job id is one path segment, with `%2F` for `/`")
}

async fn method_not_allowed(method: Method, uri: Uri) -> ApiError {
    ApiError::new(ProblemCode::MethodNotAllowed, format!("`{}` does not support {method}", shortened(uri.path())))
}

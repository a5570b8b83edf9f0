//! All routes, one file per noun. Each file has one `router` with its paths from the root on.

pub(crate) mod backfill;
pub(crate) mod control;
pub(crate) mod document;
pub(crate) mod entry;
pub(crate) mod feed;
pub(crate) mod health;
pub(crate) mod holes;
pub(crate) mod job_put;
pub(crate) mod job_remove;
pub(crate) mod jobs;
pub(crate) mod metrics;
pub(crate) mod next;
pub(crate) mod nodes;
pub(crate) mod outputs;
pub(crate) mod pauses;
pub(crate) mod peers;
pub(crate) mod reload;
pub(crate) mod run_operations;
pub(crate) mod runs;
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

/// Everything that can be asked, without the guard.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .merge(jobs::router())
        .merge(pauses::router())
        .merge(next::router())
        .merge(why::router())
        .merge(backfill::router())
        .merge(holes::router())
        .merge(runs::router())
        .merge(outputs::router())
        .merge(feed::router())
        .merge(nodes::router())
        .merge(peers::router())
        .merge(reload::router())
        .merge(control::router())
        .merge(entry::router())
        .merge(health::router())
        .merge(metrics::router())
        .merge(document::router())
        .merge(page::router())
        .fallback(no_such_path)
        .method_not_allowed_fallback(not_in_this_way)
}

async fn no_such_path(uri: Uri) -> ApiError {
    ApiError::new(ProblemCode::NotFound, format!("there is nothing at `{}`", shortened(uri.path())))
        .hint("GET /openapi.json tells what there is; a job's id is one part of a path, with `%2F` for `/`")
}

async fn not_in_this_way(method: Method, uri: Uri) -> ApiError {
    ApiError::new(ProblemCode::MethodNotAllowed, format!("`{}` cannot be asked with {method}", shortened(uri.path())))
}

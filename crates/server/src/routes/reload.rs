//! Rereads the job files. The daemon watches them as well; this request returns the result immediately.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use cronhold_api::{Problem, ReloadReport};

use super::pauses::EmptyBody;
use crate::AppState;
use crate::extract::JsonBody;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/reload", post(reload))
}

/// Reread all job files and apply their changes
#[utoipa::path(post, path = "/api/v1/reload", tag = "jobs",
    responses((status = 200, body = ReloadReport), (status = "4XX", body = Problem)))]
pub(crate) async fn reload(
    State(app): State<Arc<AppState>>,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Json<ReloadReport> {
    Json(app.files.reload().await)
}

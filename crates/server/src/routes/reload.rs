//! Job files are read anew. They are watched as well; this is for whoever wants to know at once what came of it.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use cronhold_api::{Problem, ReloadReport};

use super::pauses::EmptyBody;
use crate::AppState;
use crate::extract::JsonBody;

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/reload", post(reload))
}

/// Reads all job files anew and does what they say.
#[utoipa::path(post, path = "/api/v1/reload", tag = "jobs",
    responses((status = 200, body = ReloadReport), (status = "4XX", body = Problem)))]
pub(crate) async fn reload(
    State(app): State<Arc<AppState>>,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Json<ReloadReport> {
    Json(app.files.reload().await)
}

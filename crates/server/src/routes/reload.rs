//! Job files are read anew. They are watched as well; this is for whoever wants to know at once what came of it.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use cronhold_api::{Problem, Reloaded};

use super::pauses::Nothing;
use crate::App;
use crate::extract::Body;

/// The routes.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/v1/reload", post(reload))
}

/// Reads all job files anew and does what they say.
#[utoipa::path(post, path = "/api/v1/reload", tag = "jobs",
    responses((status = 200, body = Reloaded), (status = "4XX", body = Problem)))]
pub(crate) async fn reload(State(app): State<Arc<App>>, Body(Nothing {}): Body<Nothing>) -> Json<Reloaded> {
    Json(app.files.reload().await)
}

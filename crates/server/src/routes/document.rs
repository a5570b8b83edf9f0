//! The OpenAPI document.

use std::sync::Arc;

use axum::routing::get;
use axum::{Json, Router};
use utoipa::openapi::OpenApi;

use crate::{AppState, openapi};

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/openapi.json", get(document))
}

async fn document() -> Json<OpenApi> {
    Json(openapi::document())
}

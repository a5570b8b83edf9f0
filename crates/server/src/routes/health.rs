//! Health checks. They need no authentication, so they disclose little.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use cronhold_api::HealthReport;

use crate::AppState;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/health", get(health)).route("/ready", get(ready))
}

/// Check the health of the daemon
#[utoipa::path(get, path = "/health", tag = "health", security(()),
    responses((status = 200, body = HealthReport), (status = 503, body = HealthReport)))]
pub(crate) async fn health(State(app): State<Arc<AppState>>) -> (StatusCode, Json<HealthReport>) {
    let health = report(&app).await;
    (status(health.ok), Json(health))
}

/// Check whether the daemon has recovered and starts due runs
#[utoipa::path(get, path = "/ready", tag = "health", security(()),
    responses((status = 200, body = HealthReport), (status = 503, body = HealthReport)))]
pub(crate) async fn ready(State(app): State<Arc<AppState>>) -> (StatusCode, Json<HealthReport>) {
    let health = report(&app).await;
    (status(health.ok && health.ready), Json(health))
}

async fn report(app: &AppState) -> HealthReport {
    // The reason may contain paths, so it is only in the log.
    let is_well = app.store.health().await.trouble.is_none();
    let unreadable_records = app.feed.unreadable_records();
    let trouble = match (is_well, unreadable_records) {
        (false, _) => Some("the store fails; see the log for details".to_owned()),
        // A restart would not help, so this does not make the daemon unhealthy.
        (true, 1..) => Some(format!("{unreadable_records} stored records cannot be read; see the log for their keys")),
        (true, 0) => None,
    };
    let (ready, version) = (app.is_ready(), app.version.to_owned());
    HealthReport { ok: is_well, ready, trouble, unreadable_records, version }
}

fn status(is_well: bool) -> StatusCode {
    if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

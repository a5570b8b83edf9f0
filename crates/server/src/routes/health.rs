//! Health checks. They need no authentication, so they disclose little.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use cronhold_api::{HealthProblem, HealthProblemCode, HealthReport, StoreLimitsReport};
use cronhold_store::StoreLimits;

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
    let store = app.store.health().await;
    let is_well = store.trouble.is_none() && store.sealed.is_none();
    let unreadable_records = app.feed.unreadable_records();
    let mut problems = Vec::new();
    let mut add = |code, message: String| problems.push(HealthProblem { code, message });
    if let Some(reason) = &store.sealed {
        add(HealthProblemCode::StoreSealed, format!("the store is sealed: {reason}"));
    } else if !is_well {
        add(HealthProblemCode::StoreFails, "the store fails; see the log for details".to_owned());
    }
    // The node goes on: it finishes what runs, and starts runs again when its keeper works. Other nodes take its share.
    let can_start_programs = app.feed.keeper_problem().is_none();
    if !can_start_programs {
        let message = "the keeper fails, so no program can be started; see the log for details";
        add(HealthProblemCode::KeeperFails, message.to_owned());
    }
    // A restart would not help against damage of a part, so that does not make the daemon unhealthy.
    if app.feed.is_store_damaged() {
        add(HealthProblemCode::StoreDamaged, "a part of the store is damaged; see the log for details".to_owned());
    }
    if unreadable_records > 0 {
        let message = format!(
            "stored records that cannot be read: {unreadable_records}; jobs that need them do not run; \
             `cronhold list` and the log name them"
        );
        add(HealthProblemCode::RecordsUnreadable, message);
    }
    let trouble = problems.first().map(|problem| problem.message.clone());
    let can_start = can_start_programs && store.sealed.is_none();
    let (ready, version) = (app.is_ready() && can_start, app.version.to_owned());
    let zone_data = (app.world)().zones_version.to_string();
    let other_zone_data = app.feed.other_zones().into_iter().map(|(node, zones)| format!("{node}: {zones}")).collect();
    let ok = is_well && can_start_programs;
    let store_limits = limits_report(app.store.limits());
    HealthReport { ok, ready, trouble, problems, unreadable_records, version, zone_data, other_zone_data, store_limits }
}

/// The limits of a store; `None` if it sets none.
fn limits_report(limits: StoreLimits) -> Option<StoreLimitsReport> {
    let StoreLimits { record, unit, output, outputs, kept } = limits;
    (limits != StoreLimits::default()).then_some(StoreLimitsReport {
        record_bytes: record,
        unit_bytes: unit,
        output_bytes: output,
        outputs,
        kept_runs: kept,
    })
}

fn status(is_well: bool) -> StatusCode {
    if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

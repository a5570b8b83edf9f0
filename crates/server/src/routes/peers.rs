//! Runs of Cronken nodes that share the store. They are read-only.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use cronhold_api::{PeerRun, PeerState, Problem};
use cronhold_core::record::ProgramExit;
use cronhold_store::{SharedRun, SharedRunState};
use serde::Deserialize;

use crate::AppState;
use crate::extract::{QueryParams, limit};
use crate::problem::ApiError;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/peers/runs", get(runs))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PeerRunQuery {
    job: Option<String>,
    limit: Option<usize>,
}

/// List runs of Cronken nodes that share the store
///
/// The list has the running runs and, up to the limit, those that ended last. It is ordered by start time, latest
/// first. It is empty if there are no such nodes.
#[utoipa::path(get, path = "/api/v1/peers/runs", tag = "peers",
    params(
        ("job" = Option<String>, Query, description = "Cronken's name of the job"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000,
            description = "Maximum number of runs; default: 50"),
    ),
    responses((status = 200, body = Vec<PeerRun>), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn runs(
    State(app): State<Arc<AppState>>,
    QueryParams(query): QueryParams<PeerRunQuery>,
) -> Result<Json<Vec<PeerRun>>, ApiError> {
    let limit = limit(query.limit)?;
    let runs = match app.store.shared().filter(|shared| shared.has_foreign_nodes()) {
        Some(shared) => shared.foreign_runs(query.job.as_deref(), limit).await?,
        None => Vec::new(),
    };
    Ok(Json(runs.into_iter().map(peer_run).collect()))
}

fn peer_run(run: SharedRun) -> PeerRun {
    let (exit_code, signal) = match run.exit {
        Some(ProgramExit::Code(code)) => (Some(code), None),
        Some(ProgramExit::Signal(signal)) => (None, Some(signal.to_string())),
        None => (None, None),
    };
    PeerRun {
        id: run.id,
        job: run.job,
        state: match run.state {
            SharedRunState::Running => PeerState::Running,
            SharedRunState::Success => PeerState::Success,
            SharedRunState::Failure => PeerState::Failure,
            SharedRunState::Frozen => PeerState::Frozen,
        },
        host: run.host,
        started: run.started,
        took_ms: run.took.map(|took| took.millis()),
        exit_code,
        signal,
        tail: run.tail,
    }
}

#[cfg(test)]
mod tests {
    use cronhold_core::signal::Signal;
    use cronhold_schedule::{Instant, Span};
    use serde_json::json;

    use super::*;
    use crate::testing::with_rig;

    #[test]
    fn store_without_cronken_has_no_peer_runs() {
        with_rig("peers", async |rig| {
            for path in ["/api/v1/peers/runs", "/api/v1/peers/runs?job=any%20name&limit=1000"] {
                assert_eq!(rig.request(&format!("GET {path}"), "").await.json(), json!([]));
            }
            for wrong in ["limit=0", "limit=1001", "state=success"] {
                let refused = rig.request(&format!("GET /api/v1/peers/runs?{wrong}"), "").await;
                assert_eq!(refused.problem().0, 400, "{wrong}");
            }
        });
    }

    #[test]
    fn every_field_of_a_peer_run_is_shown() {
        let run = SharedRun {
            id: "aaaa".to_owned(),
            job: "report".to_owned(),
            host: "draco".to_owned(),
            started: Instant::from_secs(1_800_000_000),
            state: SharedRunState::Failure,
            exit: Some(ProgramExit::Code(3)),
            took: Some(Span::from_micros(1_500_900)),
            tail: vec!["no".to_owned()],
        };
        let expected = json!({
            "id": "aaaa", "job": "report", "state": "failure", "host": "draco", "started": "2027-01-15T08:00:00Z",
            "took_ms": 1500, "exit_code": 3, "signal": null, "tail": ["no"],
        });
        assert_eq!(json!(peer_run(run.clone())), expected);
        let killed = peer_run(SharedRun { exit: Some(ProgramExit::Signal(Signal::KILL)), ..run.clone() });
        assert_eq!((killed.exit_code, killed.signal.as_deref()), (None, Some("SIGKILL")));
        for (state, name) in [
            (SharedRunState::Running, "running"),
            (SharedRunState::Success, "success"),
            (SharedRunState::Failure, "failure"),
            (SharedRunState::Frozen, "frozen"),
        ] {
            let shown = peer_run(SharedRun { state, ..run.clone() });
            assert_eq!((shown.state.name(), json!(shown.state)), (name, json!(name)));
        }
    }
}

//! The plan of a backfill: the occurrences of a period, the outcome of each, and an idempotency key for each, so that a
//! repeated backfill creates no run twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use cronhold_api::{BackfillItem, BackfillPlan, Problem, ProblemCode};
use cronhold_core::record::{JobRecord, Run, ScheduleId};
use cronhold_core::why::KnownRecords;
use cronhold_core::{Args, State as RunState, job};
use cronhold_schedule::{Instant, Schedule, Span};
use serde::Deserialize;

use super::next::{compile, enabled};
use super::runs::read;
use crate::AppState;
use crate::extract::{JobIdPath, QueryParams};
use crate::job_history::{self, RunSelection};
use crate::problem::ApiError;

/// Maximum number of occurrences in a response.
const ITEMS_MAX: usize = 1_000;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/jobs/{id}/backfill", get(backfill))
}

/// The period, both ends included.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackfillQuery {
    from: Option<String>,
    to: Option<String>,
}

/// List the occurrences of a period with their outcomes
#[utoipa::path(get, path = "/api/v1/jobs/{id}/backfill", tag = "jobs",
    params(
        ("id" = String, Path, description = "Job id"),
        ("from" = String, Query, description = "Start of the period"),
        ("to" = Option<String>, Query, description = "End of the period; default: now"),
    ),
    responses((status = 200, body = BackfillPlan), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn backfill(
    State(app): State<Arc<AppState>>,
    JobIdPath(job): JobIdPath,
    QueryParams(period): QueryParams<BackfillQuery>,
) -> Result<Json<BackfillPlan>, ApiError> {
    let from = read("from", period.from.as_deref(), Instant::parse)?;
    let from = from.ok_or_else(|| {
        ApiError::new(ProblemCode::BadRequest, "`from` is missing")
            .hint("add the start of the period, such as `from=2026-01-01T00:00:00Z`")
    })?;
    let to = read("to", period.to.as_deref(), Instant::parse)?.unwrap_or(app.clock.now());
    if from > to {
        return Err(ApiError::new(ProblemCode::BadRequest, "`from` must not be after `to`"));
    }
    let known = job_history::load_there(&*app.store, &job, RunSelection::All).await?.known;
    let world = (app.world)();
    let mut items = Vec::new();
    let just_before = from.minus(Span::from_micros(1));
    for (job, id, schedule) in enabled(&known) {
        let compiled = compile(job, id, schedule, &world)?;
        // A schedule that counts from its previous run has no occurrences without a run.
        if compiled.counts_from_previous() {
            continue;
        }
        let times = compiled.between(just_before, to).take(ITEMS_MAX + 1);
        items.extend(times.map(|at| item(at, (job, id, schedule), &compiled, &known)));
    }
    items.sort_by(|one: &BackfillItem, other| (one.at, &one.schedule).cmp(&(other.at, &other.schedule)));
    let cut = items.len() > ITEMS_MAX;
    items.truncate(ITEMS_MAX);
    Ok(Json(BackfillPlan { items, cut }))
}

fn item(
    at: Instant,
    (job, id, schedule): (&JobRecord, &ScheduleId, &job::JobSchedule),
    compiled: &Schedule,
    known: &KnownRecords,
) -> BackfillItem {
    let automatic = compiled.automatic_args(at).into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let args: BTreeMap<String, String> = match Args::bind(&job.job.params, &schedule.args, &automatic) {
        Ok(args) => args.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        // The creation of the run reports missing args.
        Err(_) => schedule.args.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
    };
    let state = outcome(at, id, &args, known).map(|state| state.to_string());
    BackfillItem { at, schedule: id.to_string(), key: format!("backfill {id} {at}"), args, state }
}

/// The outcome of an occurrence: the state of its latest run, which the schedule or an earlier backfill created.
fn outcome(at: Instant, id: &ScheduleId, args: &BTreeMap<String, String>, known: &KnownRecords) -> Option<RunState> {
    let is_own = |run: &Run| match &run.schedule {
        Some(schedule) => schedule == id,
        None => run.args.iter().eq(args.iter().map(|(name, value)| (name.as_str(), value.as_str()))),
    };
    let of_it = known.runs.iter().filter(|run| run.nominal == at && is_own(run));
    if let Some(run) = of_it.max_by_key(|run| run.number) {
        return Some(run.state);
    }
    if known.spans.iter().any(|span| span.schedule == *id && span.covers(at)) {
        return Some(RunState::Skipped);
    }
    // The schedule will run backlogged occurrences itself.
    let backlog = known.backlogs.iter().find(|backlog| backlog.schedule == *id);
    backlog.filter(|backlog| backlog.holds(at)).map(|_| RunState::Scheduled)
}

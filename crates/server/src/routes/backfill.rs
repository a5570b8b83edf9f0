//! What a backfill would run: the occurrences of a stretch of time, what became of each, and the key under which each is
//! asked for, so that a backfill that is repeated runs nothing twice.

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
use crate::known::{self, RunSelection};
use crate::problem::ApiError;

/// Occurrences in one answer.
const ITEMS_MAX: usize = 1_000;

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/jobs/{id}/backfill", get(backfill))
}

/// The stretch that is asked for, both ends included.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackfillQuery {
    from: Option<String>,
    to: Option<String>,
}

/// What became of the occurrences of a stretch of time.
#[utoipa::path(get, path = "/api/v1/jobs/{id}/backfill", tag = "questions",
    params(
        ("id" = String, Path, description = "The job's id"),
        ("from" = String, Query, description = "From this time on"),
        ("to" = Option<String>, Query, description = "Up to this time; now, when absent"),
    ),
    responses((status = 200, body = BackfillPlan), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn backfill(
    State(app): State<Arc<AppState>>,
    JobIdPath(job): JobIdPath,
    QueryParams(stretch): QueryParams<BackfillQuery>,
) -> Result<Json<BackfillPlan>, ApiError> {
    let from = read("from", stretch.from.as_deref(), Instant::parse)?;
    let from = from
        .ok_or_else(|| ApiError::new(ProblemCode::BadRequest, "`from` is missing").hint("give a time to begin at"))?;
    let to = read("to", stretch.to.as_deref(), Instant::parse)?.unwrap_or(app.clock.now());
    if from > to {
        return Err(ApiError::new(ProblemCode::BadRequest, "`from` must not be after `to`"));
    }
    let known = known::load_there(&*app.store, &job, RunSelection::All).await?.known;
    let world = (app.world)();
    let mut items = Vec::new();
    let just_before = from.minus(Span::from_micros(1));
    for (job, id, schedule) in enabled(&known) {
        let compiled = compile(job, id, schedule, &world)?;
        // A schedule that counts from the run before it had no occurrences that nobody made.
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
        // What is missing is said when it is asked for.
        Err(_) => schedule.args.clone(),
    };
    let state = became(at, id, &args, known).map(|state| state.to_string());
    BackfillItem { at, schedule: id.to_string(), key: format!("backfill {id} {at}"), args, state }
}

/// What became of an occurrence: the state of its latest run, be it made by the schedule or by an earlier backfill.
fn became(at: Instant, id: &ScheduleId, args: &BTreeMap<String, String>, known: &KnownRecords) -> Option<RunState> {
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
    // What is still to be caught up will come by itself.
    let backlog = known.backlogs.iter().find(|backlog| backlog.schedule == *id);
    backlog.filter(|backlog| backlog.holds(at)).map(|_| RunState::Scheduled)
}

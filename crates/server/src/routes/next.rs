//! The next occurrences of a job, of all enabled schedules.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use cronhold_api::{LIMIT_MAX, Problem, ProblemCode, UpcomingRun};
use cronhold_core::record::{JobRecord, ScheduleId};
use cronhold_core::why::KnownRecords;
use cronhold_core::{DecisionContext, job};
use cronhold_schedule::{Instant, Schedule};
use serde::Deserialize;

use super::runs::read;
use crate::AppState;
use crate::extract::{JobIdPath, QueryParams};
use crate::job_history::{self, RunSelection};
use crate::problem::ApiError;

/// Default number of occurrences.
const COUNT: usize = 5;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/jobs/{id}/next", get(next))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NextQuery {
    count: Option<usize>,
    from: Option<String>,
}

/// List the next occurrences of a job
#[utoipa::path(get, path = "/api/v1/jobs/{id}/next", tag = "jobs",
    params(
        ("id" = String, Path, description = "Job id"),
        ("count" = Option<usize>, Query, minimum = 1, maximum = 1000,
            description = "Number of occurrences; default: 5"),
        ("from" = Option<String>, Query, description = "Only occurrences after this time; default: now"),
    ),
    responses((status = 200, body = Vec<UpcomingRun>), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn next(
    State(app): State<Arc<AppState>>,
    JobIdPath(job): JobIdPath,
    QueryParams(which): QueryParams<NextQuery>,
) -> Result<Json<Vec<UpcomingRun>>, ApiError> {
    let count = which.count.unwrap_or(COUNT);
    if !(1..=LIMIT_MAX).contains(&count) {
        return Err(ApiError::new(ProblemCode::BadRequest, format!("`count` must be from 1 to {LIMIT_MAX}")));
    }
    let from = read("from", which.from.as_deref(), Instant::parse)?.unwrap_or(app.clock.now());
    let known = job_history::load_there(&*app.store, &job, RunSelection::Present).await?.known;
    let world = (app.world)();
    let mut coming = Vec::new();
    for (job, id, schedule) in enabled(&known) {
        let compiled = compile(job, id, schedule, &world)?;
        coming.extend(times(&known, id, &compiled, from).take(count).map(|at| occurrence(at, id, &compiled)));
    }
    coming.sort_by(|one, other| (one.at, &one.schedule).cmp(&(other.at, &other.schedule)));
    coming.truncate(count);
    Ok(Json(coming))
}

/// The enabled schedules of a job.
pub(super) fn enabled(known: &KnownRecords) -> impl Iterator<Item = (&JobRecord, &ScheduleId, &job::JobSchedule)> {
    let schedules = known.job.iter().flat_map(|job| job.schedules().map(move |(id, schedule)| (&**job, id, schedule)));
    schedules.filter(|(job, _, schedule)| job.job.enables(schedule))
}

/// Compiles a schedule with the current zones and calendars.
pub(super) fn compile(
    job: &JobRecord,
    id: &ScheduleId,
    schedule: &job::JobSchedule,
    world: &DecisionContext,
) -> Result<Schedule, ApiError> {
    job.compile(schedule, world).map_err(|error| {
        let text = format!("the schedule `{id}` cannot be evaluated: `{}`: {}", error.key, error.error.message);
        ApiError::new(ProblemCode::Invalid, text)
    })
}

/// The times of a schedule after `after`. A schedule that counts from its previous run continues from its cursor, as if
/// each run ended immediately. While it waits for a run to end, its next time is unknown and the result is empty.
fn times<'a>(
    known: &KnownRecords,
    id: &ScheduleId,
    compiled: &'a Schedule,
    after: Instant,
) -> impl Iterator<Item = Instant> + use<'a> {
    let next = known.cursors.iter().find(|cursor| cursor.schedule == *id).and_then(|cursor| cursor.next);
    let first = next.filter(|_| compiled.counts_from_previous());
    let others = match (first, compiled.counts_from_previous()) {
        (None, true) => None,
        (first, _) => Some(compiled.coming(first.unwrap_or(after))),
    };
    first.into_iter().chain(others.into_iter().flatten()).skip_while(move |at| *at <= after)
}

fn occurrence(at: Instant, id: &ScheduleId, compiled: &Schedule) -> UpcomingRun {
    UpcomingRun {
        at,
        due: at.plus(compiled.jitter(at)),
        schedule: id.to_string(),
        local: at.with_offset(compiled.zone().offset_at(at.secs())),
    }
}

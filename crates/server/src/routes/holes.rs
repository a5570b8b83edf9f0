//! Occurrences without an outcome, of one job or of all jobs. The check reads all runs of a job. One request reads a
//! limited number of runs, and its response has the position for the next request.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use cronhold_api::{AnswerLine, HolesReport, Problem, ProblemCode};
use cronhold_core::JobId;
use cronhold_core::holes::{self, Hole};
use cronhold_core::record::RecordKey;
use cronhold_core::why::Tone;
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Query, UnreadableRecord};
use serde::Deserialize;

use super::runs::read;
use super::why::{line, tone};
use crate::AppState;
use crate::describe::unreadable_items;
use crate::extract::QueryParams;
use crate::job_history::{self, JobHistoryRecords, RunSelection};
use crate::problem::ApiError;

/// Default length of the period.
const BACK: Span = Span::from_secs(86_400);
/// Number of runs after which a request ends. The runs of its last job may exceed it.
const RUNS_MAX: usize = 100_000;
/// Maximum number of jobs that one request checks.
const JOBS_MAX: usize = 10_000;
/// Number of jobs in a page.
const PAGE: usize = 500;
/// Maximum number of lines in a response. Further holes are only counted.
const LINES_MAX: usize = 1_000;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/holes", get(find_holes))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HolesQuery {
    job: Option<String>,
    from: Option<String>,
    to: Option<String>,
    after: Option<String>,
}

/// Find occurrences without an outcome
///
/// There should be none: every occurrence has a recorded outcome.
#[utoipa::path(get, path = "/api/v1/holes", tag = "jobs",
    params(
        ("job" = Option<String>, Query, description = "Job id; default: all jobs"),
        ("from" = Option<String>, Query, description = "Start of the period; default: 24 hours before its end"),
        ("to" = Option<String>, Query, description = "End of the period; default: now"),
        ("after" = Option<String>, Query,
            description = "Only jobs with an id after this one: `next` of the previous response"),
    ),
    responses((status = 200, body = HolesReport), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn find_holes(
    State(app): State<Arc<AppState>>,
    QueryParams(period): QueryParams<HolesQuery>,
) -> Result<Json<HolesReport>, ApiError> {
    let now = app.clock.now();
    let to = read("to", period.to.as_deref(), Instant::parse)?.unwrap_or(now).min(now);
    let from = read("from", period.from.as_deref(), Instant::parse)?.unwrap_or(to.minus(BACK));
    if from > to {
        return Err(ApiError::new(ProblemCode::BadRequest, "`from` must not be after `to` or in the future"));
    }
    let mut holes = HolesReport { from, to, jobs: 0, found: 0, lines: Vec::new(), unreadable: Vec::new(), next: None };
    if let Some(job) = read("job", period.job.as_deref(), JobId::parse)? {
        let loaded = job_history::load_there(&*app.store, &job, RunSelection::All).await?;
        check(&app, &loaded, &mut holes);
        return Ok(Json(holes));
    }
    let after = read("after", period.after.as_deref(), JobId::parse)?;
    check_all(&app, after, &mut holes).await?;
    Ok(Json(holes))
}

/// Checks all jobs after one, up to the limits of a request.
async fn check_all(app: &AppState, mut after: Option<JobId>, holes: &mut HolesReport) -> Result<(), ApiError> {
    let mut runs = 0;
    loop {
        let page = app.store.page(&Query::Jobs { after }, PAGE).await?;
        let next = page.next(PAGE);
        add_unreadable(app, &page.unreadable, holes);
        for stored in page.records {
            let RecordKey::Job(job) = stored.record.key() else { continue };
            if job.is_ad_hoc() {
                // It has no schedule.
                continue;
            }
            match job_history::load(&*app.store, &job, RunSelection::All).await {
                Ok(loaded) => {
                    runs += loaded.runs();
                    check(app, &loaded, holes);
                }
                // The other jobs can still be checked.
                Err(Fault::Unreadable(record)) => add_unreadable(app, &[*record], holes),
                Err(fault) => return Err(fault.into()),
            }
            // Let other requests proceed.
            tokio::task::yield_now().await;
            if runs >= RUNS_MAX || holes.jobs >= JOBS_MAX as u64 {
                holes.next = Some(job.to_string());
                return Ok(());
            }
        }
        let Some(RecordKey::Job(last)) = next else { return Ok(()) };
        after = Some(last);
    }
}

/// Names records that cannot be read, so that the occurrences of their jobs are not known.
fn add_unreadable(app: &AppState, records: &[UnreadableRecord], holes: &mut HolesReport) {
    let left = LINES_MAX.saturating_sub(holes.unreadable.len());
    holes.unreadable.extend(unreadable_items(app, records).into_iter().take(left));
}

/// Checks a job.
fn check(app: &AppState, loaded: &JobHistoryRecords, holes: &mut HolesReport) {
    let JobHistoryRecords { known, cut, unreadable } = loaded;
    add_unreadable(app, unreadable, holes);
    let world = (app.world)();
    holes.jobs += 1;
    // Runs before the first loaded one are unknown, and their occurrences would be reported as holes.
    let from = cut.map_or(holes.from, |cut| cut.plus(Span::from_millis(1)).max(holes.from));
    if from > holes.from
        && let Some(job) = &known.job
    {
        let text = format!("`{}` has too many runs: occurrences before {from} were not checked.", job.id);
        holes.lines.push(AnswerLine { tone: tone(Tone::Answer).to_owned(), text });
    }
    let found = holes::holes(known, &world, from, holes.to.max(from));
    holes.found += found.found.iter().map(|Hole { stretch, .. }| u64::from(stretch.count)).sum::<u64>();
    holes.found += found.overdue.len() as u64;
    let left = LINES_MAX.saturating_sub(holes.lines.len());
    holes.lines.extend(found.words(known, &world).into_iter().take(left).map(line));
}

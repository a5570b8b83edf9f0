//! Occurrences without an outcome, of one job or of all. Every run of a job has to be looked at for that, so one request
//! looks at so many runs and says where the next has to go on.

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
use cronhold_store::Query;
use serde::Deserialize;

use super::runs::read;
use super::why::{line, tone};
use crate::AppState;
use crate::extract::QueryParams;
use crate::known::{self, JobHistoryRecords, RunSelection};
use crate::problem::ApiError;

/// How far back it is looked when nobody says so.
const BACK: Span = Span::from_secs(86_400);
/// Runs that one request looks at, but for those of the last job.
const RUNS_MAX: usize = 100_000;
/// Jobs that one request looks at.
const JOBS_MAX: usize = 10_000;
/// Jobs in a page.
const PAGE: usize = 500;
/// Lines of an answer; holes beyond are only counted.
const LINES_MAX: usize = 1_000;

/// The routes.
pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/holes", get(ask))
}

/// Where it is looked.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HolesQuery {
    job: Option<String>,
    from: Option<String>,
    to: Option<String>,
    after: Option<String>,
}

/// Occurrences that have no outcome, which there must never be.
#[utoipa::path(get, path = "/api/v1/holes", tag = "questions",
    params(
        ("job" = Option<String>, Query, description = "Only of this job"),
        ("from" = Option<String>, Query, description = "From this time on; a day ago, when absent"),
        ("to" = Option<String>, Query, description = "Up to this time; now, when absent"),
        ("after" = Option<String>, Query, description = "Only jobs after this one: `next` of the answer before"),
    ),
    responses((status = 200, body = HolesReport), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn ask(
    State(app): State<Arc<AppState>>,
    QueryParams(place): QueryParams<HolesQuery>,
) -> Result<Json<HolesReport>, ApiError> {
    let now = app.clock.now();
    let to = read("to", place.to.as_deref(), Instant::parse)?.unwrap_or(now).min(now);
    let from = read("from", place.from.as_deref(), Instant::parse)?.unwrap_or(to.minus(BACK));
    if from > to {
        return Err(ApiError::new(ProblemCode::BadRequest, "`from` must not be after `to`, nor after the present"));
    }
    let mut holes = HolesReport { from, to, jobs: 0, found: 0, lines: Vec::new(), next: None };
    if let Some(job) = read("job", place.job.as_deref(), JobId::parse)? {
        let loaded = known::load_there(&*app.store, &job, RunSelection::All).await?;
        look(&app, &loaded, &mut holes);
        return Ok(Json(holes));
    }
    let after = read("after", place.after.as_deref(), JobId::parse)?;
    look_at_all(&app, after, &mut holes).await?;
    Ok(Json(holes))
}

/// Looks at all jobs after one, as far as it gets.
async fn look_at_all(app: &AppState, mut after: Option<JobId>, holes: &mut HolesReport) -> Result<(), ApiError> {
    let mut runs = 0;
    loop {
        let page = app.store.page(&Query::Jobs { after }, PAGE).await?;
        let next = page.next(PAGE);
        for stored in page.records {
            let RecordKey::Job(job) = stored.record.key() else { continue };
            let loaded = known::load(&*app.store, &job, RunSelection::All).await?;
            runs += loaded.runs();
            look(app, &loaded, holes);
            // Others have questions too.
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

/// Looks at a job.
fn look(app: &AppState, loaded: &JobHistoryRecords, holes: &mut HolesReport) {
    let JobHistoryRecords { known, cut } = loaded;
    let world = (app.world)();
    holes.jobs += 1;
    // Before the first run that was loaded nothing is known, and everything would look like a hole.
    let from = cut.map_or(holes.from, |cut| cut.plus(Span::from_millis(1)).max(holes.from));
    if from > holes.from
        && let Some(job) = &known.job
    {
        let text = format!("Of `{}` nothing before {from} was checked: it has too many runs.", job.id);
        holes.lines.push(AnswerLine { tone: tone(Tone::Answer).to_owned(), text });
    }
    let found = holes::holes(known, &world, from, holes.to.max(from));
    holes.found += found.found.iter().map(|Hole { stretch, .. }| u64::from(stretch.count)).sum::<u64>();
    let room = LINES_MAX.saturating_sub(holes.lines.len());
    holes.lines.extend(found.words(known, &world).into_iter().take(room).map(line));
}

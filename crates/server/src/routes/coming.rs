//! What runs next across all jobs: the coming occurrences of all schedules, and runs that wait for their time. The store
//! lists obligations by due time, so the cost depends on the window and not on the number of jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use cronhold_api::{ComingList, ComingRun, Problem, ProblemCode};
use cronhold_core::record::{Cursor, JobRecord, JobState, PauseState, Record, RecordKey, Run};
use cronhold_core::{DecisionContext, State as RunState};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Obligation, load_readable};
use serde::Deserialize;

use crate::AppState;
use crate::extract::{QueryParams, limit};
use crate::problem::ApiError;

/// Default length of the window.
const WINDOW: Span = Span::from_secs(3_600);
/// Maximum length of the window.
const WINDOW_MAX: Span = Span::from_secs(366 * 86_400);
/// Number of obligations that are read in one page.
const PAGE: usize = 500;
/// Maximum number of obligations that one request reads.
const SCANNED_MAX: usize = 50_000;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/coming", get(coming))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ComingQuery {
    #[serde(rename = "for")]
    window: Option<String>,
    limit: Option<usize>,
}

/// List what runs next across all jobs, by due time
///
/// Lists the occurrences of enabled schedules that are due in the window, and runs that were scheduled for a time in it.
/// Jobs that are paused at that time are left out, and so are occurrences that depend on the end of another run.
#[utoipa::path(get, path = "/api/v1/coming", tag = "jobs",
    params(
        ("for" = Option<String>, Query, description = "Length of the window from now on, such as `2h`; default: `1h`"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000,
            description = "Maximum number of runs; default: 50"),
    ),
    responses((status = 200, body = ComingList), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn coming(
    State(app): State<Arc<AppState>>,
    QueryParams(which): QueryParams<ComingQuery>,
) -> Result<Json<ComingList>, ApiError> {
    let limit = limit(which.limit)?;
    let window = super::runs::read("for", which.window.as_deref(), Span::parse)?.unwrap_or(WINDOW);
    if window.is_zero() || window > WINDOW_MAX {
        return Err(ApiError::new(ProblemCode::BadRequest, "`for` must be longer than nothing and at most 366 days"));
    }
    let now = app.clock.now();
    let until = now.plus(window);
    let mut found = EarliestRuns::new(limit);
    let (mut after, mut scanned) = (None, 0);
    let is_complete = loop {
        let page = app.store.due(after.as_ref(), until, PAGE).await?;
        scanned += page.len();
        let loaded = DueRecords::load(&app, &page).await?;
        loaded.collect(now, until, &(app.world)(), &mut found);
        match page.last() {
            // All others are due later.
            Some(last) if found.is_full_before(last.at) => break true,
            Some(_) if page.len() == PAGE && scanned >= SCANNED_MAX => break false,
            Some(last) if page.len() == PAGE => after = Some(last.clone()),
            _ => break true,
        }
    };
    let (items, has_more) = found.into_items();
    Ok(Json(ComingList { items, cut: has_more || !is_complete }))
}

/// The earliest runs, at most one more than requested.
struct EarliestRuns {
    limit: usize,
    /// The number distinguishes runs that are due at the same time.
    runs: BTreeMap<(Instant, String, usize), ComingRun>,
    added: usize,
}

impl EarliestRuns {
    fn new(limit: usize) -> Self {
        Self { limit, runs: BTreeMap::new(), added: 0 }
    }

    /// Adds a run. Returns false if no later one of its schedule can be among the earliest.
    fn add(&mut self, run: ComingRun) -> bool {
        if self.is_full_before(run.due) {
            return false;
        }
        self.added += 1;
        self.runs.insert((run.due, run.job.clone(), self.added), run);
        if self.runs.len() > self.limit + 1 {
            self.runs.pop_last();
        }
        true
    }

    fn is_full_before(&self, due: Instant) -> bool {
        self.runs.len() > self.limit && self.runs.last_key_value().is_some_and(|((last, ..), _)| *last < due)
    }

    /// The runs, and whether there are more than requested.
    fn into_items(self) -> (Vec<ComingRun>, bool) {
        let has_more = self.runs.len() > self.limit;
        (self.runs.into_values().take(self.limit).collect(), has_more)
    }
}

/// Records of a page of obligations.
#[derive(Default)]
struct DueRecords {
    cursors: Vec<Arc<Cursor>>,
    runs: Vec<Arc<Run>>,
    jobs: BTreeMap<String, Arc<JobRecord>>,
    states: BTreeMap<String, Arc<JobState>>,
    everything: Arc<PauseState>,
}

impl DueRecords {
    /// Loads the records. Unreadable ones are left out.
    async fn load(app: &AppState, page: &[Obligation]) -> Result<Self, Fault> {
        let mut found = Self::default();
        let is_wanted = |key: &RecordKey| matches!(key, RecordKey::Cursor(..) | RecordKey::Run(_));
        let keys: Vec<RecordKey> = page.iter().map(|due| due.key.clone()).filter(is_wanted).collect();
        let mut more = BTreeSet::from([RecordKey::Pause]);
        for (_, stored) in load_readable(&*app.store, &keys).await?.records {
            let job = match stored.map(|stored| stored.record) {
                Some(Record::Cursor(cursor)) => {
                    found.cursors.push(Arc::clone(&cursor));
                    cursor.job.clone()
                }
                Some(Record::Run(run)) if run.state == RunState::Scheduled => {
                    found.runs.push(Arc::clone(&run));
                    run.job.clone()
                }
                _ => continue,
            };
            more.extend([RecordKey::Job(job.clone()), RecordKey::JobState(job)]);
        }
        let more: Vec<RecordKey> = more.into_iter().collect();
        for (_, stored) in load_readable(&*app.store, &more).await?.records {
            match stored.map(|stored| stored.record) {
                Some(Record::Job(job)) => drop(found.jobs.insert(job.id.to_string(), job)),
                Some(Record::JobState(state)) => drop(found.states.insert(state.job.to_string(), state)),
                Some(Record::Pause(pauses)) => found.everything = pauses,
                _ => {}
            }
        }
        Ok(found)
    }

    fn collect(&self, now: Instant, until: Instant, world: &DecisionContext, found: &mut EarliestRuns) {
        for run in &self.runs {
            let due = run.due.unwrap_or(run.nominal);
            if run.is_by_operator() || !self.is_paused(run.job.as_str(), due.max(now)) {
                found.add(coming_run(run, due));
            }
        }
        for cursor in &self.cursors {
            let (Some(first), Some(job)) = (cursor.next.zip(cursor.wake), self.jobs.get(cursor.job.as_str())) else {
                continue;
            };
            let Some(schedule) = job.schedule(&cursor.schedule).filter(|schedule| job.job.enables(schedule)) else {
                continue;
            };
            let Ok(compiled) = job.compile(schedule, world) else { continue };
            let others = compiled.coming(first.0.max(now)).take_while(|_| !compiled.counts_from_previous());
            let others = others.map(|nominal| (nominal, nominal.plus(compiled.jitter(nominal))));
            for (nominal, due) in [first].into_iter().chain(others).take_while(|(nominal, _)| *nominal <= until) {
                // The jitter may move an occurrence behind the window.
                if due > until || self.is_paused(cursor.job.as_str(), due.max(now)) {
                    continue;
                }
                let run = ComingRun {
                    job: cursor.job.to_string(),
                    nominal,
                    due,
                    schedule: Some(cursor.schedule.to_string()),
                    run: None,
                };
                if !found.add(run) {
                    break;
                }
            }
        }
    }

    /// Whether a job, or everything, is paused at a time, as far as it is known now.
    fn is_paused(&self, job: &str, at: Instant) -> bool {
        let own = self.states.get(job).is_some_and(|state| state.pauses.is_paused_at(at));
        own || self.everything.is_paused_at(at)
    }
}

fn coming_run(run: &Run, due: Instant) -> ComingRun {
    ComingRun {
        job: run.job.to_string(),
        nominal: run.nominal,
        due,
        schedule: run.schedule.as_ref().map(ToString::to_string),
        run: Some(run.id.to_string()),
    }
}

#[cfg(test)]
mod tests;

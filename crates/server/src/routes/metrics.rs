//! Metrics in the text format of Prometheus.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use cronhold_api::Problem;
use cronhold_core::job::ActionKind;
use cronhold_core::record::{Record, RecordKey};
use cronhold_engine::CounterSnapshot;
use cronhold_schedule::Span;
use cronhold_store::lock_mutex;
use cronhold_store::{Fault, Query, ReadableRecords, load_readable};

use crate::AppState;
use crate::problem::ApiError;

const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Number of jobs per page when they are counted.
const PAGE: usize = 1_000;
/// How long a count of jobs is cached, because counting reads all of them.
const COUNT_LASTS: Span = Span::from_secs(30);

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/metrics", get(metrics)).layer(Extension(Arc::new(JobCountCache::default())))
}

/// The last count of jobs, with the uptime of the count.
#[derive(Debug, Default)]
pub(crate) struct JobCountCache(Mutex<Option<(Span, JobCounts)>>);

#[derive(Debug, Clone, Copy, Default)]
struct JobCounts {
    jobs: u64,
    paused: u64,
    /// Number of job records that cannot be read.
    unreadable: u64,
}

/// Get metrics in the text format of Prometheus
#[utoipa::path(get, path = "/metrics", tag = "health",
    responses((status = 200, content_type = "text/plain", body = String), (status = "4XX", body = Problem),
        (status = 503, body = Problem)))]
pub(crate) async fn metrics(
    State(app): State<Arc<AppState>>,
    Extension(counted): Extension<Arc<JobCountCache>>,
) -> Result<Response, ApiError> {
    let (counts, store) = (counted.now(&app).await?, app.store.health().await);
    let reading = app.node.counters();
    let mistakes = app.files.mistakes().len() as u64;
    let mut text = String::new();
    let mut add = |name: &str, kind: &str, help: &str, value: u64| {
        writeln!(text, "# HELP cronhold_{name} {help}\n# TYPE cronhold_{name} {kind}\ncronhold_{name} {value}")
            .expect("writing to a string does not fail");
    };
    add("ready", "gauge", "Whether the node has recovered and starts due runs.", app.is_ready().into());
    add("jobs", "gauge", "Number of jobs.", counts.jobs);
    add("jobs_paused", "gauge", "Number of jobs that are paused individually.", counts.paused);
    add("job_file_mistakes", "gauge", "Number of errors in job files and calendars.", mistakes);
    let unreadable = counts.unreadable.max(app.feed.unreadable_records());
    add(
        "unreadable_records",
        "gauge",
        "Number of stored records that cannot be read; the log has their keys.",
        unreadable,
    );
    add("turns_total", "counter", "Turns of the engine loop.", reading.turns);
    add("commands_total", "counter", "Commands executed.", reading.commands);
    add(
        "commands_repeated_total",
        "counter",
        "Commands decided again, mostly because another node was first.",
        reading.repeated,
    );
    add("programs_launched_total", "counter", "Program launches requested.", reading.launched);
    add("runs_finished_total", "counter", "Runs that finished on this node.", reading.finished);
    add("claims_late_total", "counter", "Occurrences claimed more than a second after they were due.", reading.late);
    add("claim_lateness_max_milliseconds", "gauge", "Maximum lateness of a claim in milliseconds.", reading.latest_ms);
    add("store_faults_total", "counter", "Commands that failed because of the store.", reading.faults);
    add("records_unreadable_total", "counter", "Failed attempts to read a stored record.", reading.unreadable);
    add("repairs_total", "counter", "Obligations that the watchdog repaired.", reading.repaired);
    add("clock_steps_total", "counter", "Steps of the system clock.", reading.clock_steps);
    add("store_up", "gauge", "Whether the store works.", store.trouble.is_none().into());
    add("store_commits_total", "counter", "Commits of the store.", store.commits);
    add("store_units_total", "counter", "Units committed to the store.", store.units);
    let can_start = app.feed.keeper_problem().is_none();
    add("keeper_up", "gauge", "Whether the keeper can start programs.", can_start.into());
    add(
        "keeper_failures_total",
        "counter",
        "Times the keeper became unable to start programs.",
        app.feed.keeper_failures(),
    );
    add("actions_pending", "gauge", "Actions that are neither delivered nor given up.", reading.actions_pending);
    write_actions(&mut text, &reading);
    let version = app.version.replace(['\\', '"', '\n'], "_");
    writeln!(
        text,
        "# HELP cronhold_build_info Version of the daemon.\n# TYPE cronhold_build_info gauge\n\
         cronhold_build_info{{version=\"{version}\"}} 1"
    )
    .expect("writing to a string does not fail");
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response())
}

/// Appends the results of actions by kind.
fn write_actions(text: &mut String, reading: &CounterSnapshot) {
    text.push_str(
        "# HELP cronhold_actions_total Results of attempts to deliver actions, by kind and result.\n\
         # TYPE cronhold_actions_total counter\n",
    );
    for (kind, count) in ActionKind::ALL.iter().zip(&reading.actions) {
        let results = [("delivered", count.delivered), ("failed", count.failed), ("given_up", count.given_up)];
        for (result, value) in results {
            let kind = kind.name();
            writeln!(text, "cronhold_actions_total{{kind=\"{kind}\",result=\"{result}\"}} {value}")
                .expect("writing to a string does not fail");
        }
    }
}

impl JobCountCache {
    async fn now(&self, app: &AppState) -> Result<JobCounts, Fault> {
        let uptime = app.clock.uptime();
        let last = *lock_mutex(&self.0);
        if let Some((_, counts)) = last.filter(|(at, _)| uptime.minus(*at) < COUNT_LASTS) {
            return Ok(counts);
        }
        let counts = JobCounts::count(app).await?;
        *lock_mutex(&self.0) = Some((uptime, counts));
        Ok(counts)
    }
}

impl JobCounts {
    async fn count(app: &AppState) -> Result<Self, Fault> {
        let mut counts = Self::default();
        let mut after = None;
        loop {
            let page = app.store.page(&Query::Jobs { after }, PAGE).await?;
            let ids = page.records.iter().filter_map(|stored| match &stored.record {
                Record::Job(job) if !job.id.is_ad_hoc() => Some(RecordKey::JobState(job.id.clone())),
                _ => None,
            });
            let states: Vec<RecordKey> = ids.collect();
            counts.jobs += states.len() as u64;
            let ReadableRecords { records: states, unreadable } = load_readable(&*app.store, &states).await?;
            counts.jobs += page.unreadable.len() as u64;
            counts.unreadable += (page.unreadable.len() + unreadable.len()) as u64;
            let paused = states.iter().filter(|(_, stored)| match stored.as_ref().map(|stored| &stored.record) {
                Some(Record::JobState(state)) => state.pauses.is_paused(),
                _ => false,
            });
            counts.paused += paused.count() as u64;
            after = match page.next(PAGE) {
                Some(RecordKey::Job(last)) => Some(last),
                _ => return Ok(counts),
            };
        }
    }
}

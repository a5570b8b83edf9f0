//! Jobs in responses: collected from several records, and the mistakes in their files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_api::{FileMistake, JobDetail, JobSummary, PauseSummary, RunSummary, ScheduleSummary, UnreadableItem};
use cronhold_core::record::{Actor, Cursor, JobRecord, JobState, PauseState, Record, RecordKey, Run};
use cronhold_core::{JobId, RunId};
use cronhold_jobfile::{line_column, to_yaml, unsupported_in, write_job};
use cronhold_store::{Fault, ReadableRecords, UnreadableRecord, load_readable};

use crate::AppState;
use crate::find_run::{ListedRun, current_of, latest_started, run_ids};
use crate::node_names::NodeNames;
use crate::problem::repair_hint;

/// Number of active runs of a job among which the running one is found for a list of jobs.
const ACTIVE_LOADED: usize = 20;

/// Current mistakes in job files.
#[derive(Debug, Default)]
pub(crate) struct JobFileMistakes {
    /// Mistakes by job.
    pub(crate) of_jobs: BTreeMap<JobId, Vec<FileMistake>>,
    /// Mistakes in files that define no job.
    pub(crate) others: Vec<FileMistake>,
}

/// The stored state of some jobs, without their definitions, at one time.
#[derive(Debug)]
pub(crate) struct JobSurroundings {
    /// The pause of everything.
    pub(crate) pause: Option<PauseSummary>,
    states: BTreeMap<JobId, Arc<JobState>>,
    cursors: BTreeMap<JobId, Vec<Arc<Cursor>>>,
    /// By job, the run that is running or started last.
    latest: BTreeMap<JobId, RunSummary>,
    /// Related records that cannot be read.
    pub(crate) unreadable: Vec<UnreadableRecord>,
}

impl JobFileMistakes {
    /// Collects all current mistakes.
    pub(crate) fn now(app: &AppState) -> Self {
        let mut all = Self::default();
        for found in app.files.mistakes() {
            match found.job {
                Some(job) => all.of_jobs.entry(job).or_default().push(found.mistake),
                None => all.others.push(found.mistake),
            }
        }
        all
    }

    fn of(&self, job: &JobId) -> Vec<FileMistake> {
        self.of_jobs.get(job).cloned().unwrap_or_default()
    }

    /// Mistakes in the file of a job, and settings of the stored job that this version does not support. Another
    /// version stored such a job. It keeps its schedule; the mistakes have the positions in its YAML.
    fn of_record(&self, record: &JobRecord) -> Vec<FileMistake> {
        let mut all = self.of(&record.id);
        if let Some((yaml, mistakes)) = unsupported_in(record.id.as_str(), &record.job) {
            let reported: BTreeSet<String> = all.iter().map(|mistake| mistake.message.clone()).collect();
            for mistake in mistakes.into_iter().filter(|mistake| !reported.contains(&mistake.message)) {
                let (line, column) = line_column(&yaml, mistake.at.start);
                let (line, column) = (line as u64, column as u64);
                all.push(FileMistake {
                    file: mistake.file,
                    line,
                    column,
                    message: mistake.message,
                    hint: mistake.hint,
                });
            }
        }
        all
    }
}

impl JobSurroundings {
    /// Loads the state of some jobs.
    pub(crate) async fn load(app: &AppState, jobs: &[Arc<JobRecord>]) -> Result<Self, Fault> {
        let mut keys = vec![RecordKey::Pause];
        for job in jobs {
            keys.push(RecordKey::JobState(job.id.clone()));
            keys.extend(job.schedules().map(|(schedule, _)| RecordKey::Cursor(job.id.clone(), schedule.clone())));
        }
        let ReadableRecords { records, unreadable } = load_readable(&*app.store, &keys).await?;
        let (states, cursors, latest) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut around = Self { pause: None, states, cursors, latest, unreadable };
        for stored in records.into_iter().filter_map(|(_, stored)| stored) {
            match stored.record {
                Record::Pause(pauses) => around.pause = pause_summary(&pauses, true),
                Record::JobState(state) => drop(around.states.insert(state.job.clone(), state)),
                Record::Cursor(cursor) => around.cursors.entry(cursor.job.clone()).or_default().push(cursor),
                _ => {}
            }
        }
        around.load_latest(app).await?;
        Ok(around)
    }

    /// Loads for each job the run that is running or started last.
    async fn load_latest(&mut self, app: &AppState) -> Result<(), Fault> {
        let ids = self.states.values().flat_map(|state| run_ids(state, ACTIVE_LOADED));
        let keys: Vec<RecordKey> = ids.map(RecordKey::Run).collect();
        let ReadableRecords { records, unreadable } = load_readable(&*app.store, &keys).await?;
        self.unreadable.extend(unreadable);
        let known = records.into_iter().filter_map(|(_, stored)| match stored?.record {
            Record::Run(run) => Some((run.id, run)),
            _ => None,
        });
        let known: BTreeMap<RunId, Arc<Run>> = known.collect();
        let mut latest = Vec::new();
        for state in self.states.values() {
            let run = match current_of(state, &known) {
                Some(run) => Some(run),
                None if state.kept.has_started() => latest_started(&*app.store, &state.job).await?,
                None => None,
            };
            latest.extend(run.map(ListedRun::Run));
        }
        let names = NodeNames::of(&*app.store, &latest).await?;
        self.latest = latest.iter().map(|run| (run.to_run().job.clone(), names.summary(run))).collect();
        Ok(())
    }

    fn pause_of(&self, job: &JobId) -> Option<PauseSummary> {
        let own = self.states.get(job).and_then(|state| pause_summary(&state.pauses, false));
        own.or_else(|| self.pause.clone())
    }

    fn cursors(&self, job: &JobId) -> &[Arc<Cursor>] {
        self.cursors.get(job).map(Vec::as_slice).unwrap_or_default()
    }

    fn active(&self, job: &JobId) -> u64 {
        let runs = self.states.get(job).map(|state| {
            let active = state.active.iter().map(|active| active.run);
            active.chain(state.queued()).collect::<BTreeSet<_>>()
        });
        runs.map_or(0, |runs| runs.len() as u64)
    }
}

/// Unreadable records in a response. The daemon remembers them for its health.
pub(crate) fn unreadable_items(app: &AppState, records: &[UnreadableRecord]) -> Vec<UnreadableItem> {
    let item = |record: &UnreadableRecord| {
        app.feed.record_unreadable(record);
        let key = record.key.as_ref();
        let job = key.and_then(RecordKey::job).map(ToString::to_string);
        let hint = Some(repair_hint(key));
        UnreadableItem { record: key.map(ToString::to_string), job, reason: record.reason.clone(), hint }
    };
    records.iter().map(item).collect()
}

/// A job in a list.
pub(crate) fn job(record: &JobRecord, around: &JobSurroundings, mistakes: &JobFileMistakes) -> JobSummary {
    let pause = around.pause_of(&record.id);
    let next = around.cursors(&record.id).iter().filter_map(|cursor| cursor.next).min();
    // Nothing is due during a pause.
    let next = next.filter(|_| pause.is_none());
    let schedules: Vec<String> = record
        .job
        .schedules
        .iter()
        .filter(|schedule| record.job.enables(schedule))
        .map(|it| it.spec.to_string())
        .collect();
    JobSummary {
        id: record.id.to_string(),
        description: record.job.description.lines().next().unwrap_or_default().to_owned(),
        schedule: schedules.join("; "),
        enabled: record.job.enabled,
        next,
        paused: pause.is_some(),
        pause,
        labels: record.job.labels.clone(),
        errors: mistakes.of_record(record),
        source: record.source.to_string(),
        revision: record.revision,
        active: around.active(&record.id),
        last: around.latest.get(&record.id).cloned(),
    }
}

/// A job that only an invalid file defines.
pub(crate) fn job_of_file(id: &JobId, around: &JobSurroundings, mistakes: &JobFileMistakes) -> JobSummary {
    JobSummary {
        id: id.to_string(),
        description: String::new(),
        schedule: String::new(),
        enabled: true,
        next: None,
        paused: around.pause.is_some(),
        pause: around.pause.clone(),
        labels: Vec::new(),
        errors: mistakes.of(id),
        source: String::new(),
        revision: 0,
        active: 0,
        last: None,
    }
}

/// A job in detail.
pub(crate) async fn detail(app: &AppState, record: &Arc<JobRecord>) -> Result<JobDetail, Fault> {
    let around = JobSurroundings::load(app, std::slice::from_ref(record)).await?;
    let job = job(record, &around, &JobFileMistakes::now(app));
    let (definition, world) = (write_job(&record.job), (app.world)());
    let schedules = record.schedules().map(|(id, schedule)| {
        let cursor = around.cursors(&record.id).iter().find(|cursor| cursor.schedule == *id);
        ScheduleSummary {
            id: id.to_string(),
            text: schedule.spec.to_string(),
            words: schedule.spec.words(record.id.as_str()),
            enabled: record.job.enables(schedule),
            next: cursor.and_then(|cursor| cursor.next).filter(|_| !job.paused),
            error: record
                .compile(schedule, &world)
                .err()
                .map(|error| format!("`{}`: {}", error.key, error.error.message)),
        }
    });
    let (schedules, text) = (schedules.collect(), record.job.description.clone());
    let yaml = to_yaml(&definition).expect("a JSON value");
    Ok(JobDetail { schedules, text, yaml, definition, job })
}

/// The ETag of a job: different for each revision and each new job with the same id.
pub(crate) fn etag(record: &JobRecord) -> String {
    format!("\"{}-{}\"", record.uid, record.revision)
}

fn pause_summary(pauses: &PauseState, everything: bool) -> Option<PauseSummary> {
    let pause = pauses.current.as_ref()?;
    let by = match &pause.by {
        Actor::Operator(name) => name.clone(),
        other => other.to_string(),
    };
    Some(PauseSummary { since: pause.since, until: pause.until, by, why: pause.why.clone(), everything })
}

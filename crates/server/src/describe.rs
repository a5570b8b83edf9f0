//! Jobs as they are told: what is stored of them, gathered from several records, and what is wrong with their files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_api::{FileMistake, JobDetail, JobSummary, PauseSummary, RunSummary, ScheduleSummary};
use cronhold_core::JobId;
use cronhold_core::record::{Actor, Cursor, JobRecord, JobState, PauseState, Record, RecordKey};
use cronhold_jobfile::{line_column, to_yaml, unsupported_in, write_job};
use cronhold_schedule::Instant;
use cronhold_store::Fault;

use crate::AppState;
use crate::find_run::latest_run;
use crate::load_readable::load_readable;
use crate::node_names;

/// What is wrong with job files now.
#[derive(Debug, Default)]
pub(crate) struct JobFileMistakes {
    /// By job.
    pub(crate) of_jobs: BTreeMap<JobId, Vec<FileMistake>>,
    /// Of no job.
    pub(crate) others: Vec<FileMistake>,
}

/// Everything that is known of some jobs beside their definitions, at one moment.
#[derive(Debug)]
pub(crate) struct JobSurroundings {
    /// The pause of everything.
    pub(crate) pause: Option<PauseSummary>,
    states: BTreeMap<JobId, Arc<JobState>>,
    cursors: BTreeMap<JobId, Vec<Arc<Cursor>>>,
    /// Why records that belong to them cannot be read.
    pub(crate) unreadable: Vec<String>,
    now: Instant,
}

impl JobFileMistakes {
    /// All of them.
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

    /// Mistakes of a job's file, and what the stored job asks for although this version does not carry it out. Such a
    /// job was stored by another version. It keeps its schedule, and is reported with the places in its YAML.
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
    /// Looks at what belongs to some jobs.
    pub(crate) async fn load(app: &AppState, jobs: &[Arc<JobRecord>]) -> Result<Self, Fault> {
        let mut keys = vec![RecordKey::Pause];
        for job in jobs {
            keys.push(RecordKey::JobState(job.id.clone()));
            keys.extend(job.schedules().map(|(schedule, _)| RecordKey::Cursor(job.id.clone(), schedule.clone())));
        }
        let (found, unreadable) = load_readable(&*app.store, &keys).await?;
        let (states, cursors) = (BTreeMap::new(), BTreeMap::new());
        let mut around = Self { pause: None, states, cursors, unreadable, now: app.clock.now() };
        for stored in found {
            match stored.record {
                Record::Pause(pauses) => around.pause = told_pause(&pauses, true),
                Record::JobState(state) => drop(around.states.insert(state.job.clone(), state)),
                Record::Cursor(cursor) => around.cursors.entry(cursor.job.clone()).or_default().push(cursor),
                _ => {}
            }
        }
        Ok(around)
    }

    fn pause_of(&self, job: &JobId) -> Option<PauseSummary> {
        let own = self.states.get(job).and_then(|state| told_pause(&state.pauses, false));
        own.or_else(|| self.pause.clone())
    }

    /// When a schedule is due next. What passed during a pause is not due any more.
    fn next(&self, cursor: &Cursor, is_paused: bool) -> Option<Instant> {
        cursor.next.filter(|next| !is_paused || *next > self.now)
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

/// A job as a list has it.
pub(crate) async fn job(
    app: &AppState,
    record: &JobRecord,
    around: &JobSurroundings,
    mistakes: &JobFileMistakes,
) -> Result<JobSummary, Fault> {
    let pause = around.pause_of(&record.id);
    let next = around.cursors(&record.id).iter().filter_map(|cursor| around.next(cursor, pause.is_some())).min();
    let schedules: Vec<String> =
        record.job.schedules.iter().filter(|schedule| schedule.enabled).map(|it| it.spec.to_string()).collect();
    Ok(JobSummary {
        id: record.id.to_string(),
        description: record.job.description.lines().next().unwrap_or_default().to_owned(),
        schedule: schedules.join("; "),
        next,
        paused: pause.is_some(),
        pause,
        labels: record.job.labels.clone(),
        errors: mistakes.of_record(record),
        source: record.source.to_string(),
        revision: record.revision,
        active: around.active(&record.id),
        last: latest(app, &record.id).await?,
    })
}

/// A job of which there is only a file with mistakes.
pub(crate) fn job_of_file(id: &JobId, around: &JobSurroundings, mistakes: &JobFileMistakes) -> JobSummary {
    JobSummary {
        id: id.to_string(),
        description: String::new(),
        schedule: String::new(),
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

/// A job with everything that is known of it.
pub(crate) async fn detail(app: &AppState, record: &Arc<JobRecord>) -> Result<JobDetail, Fault> {
    let around = JobSurroundings::load(app, std::slice::from_ref(record)).await?;
    let job = job(app, record, &around, &JobFileMistakes::now(app)).await?;
    let (definition, world) = (write_job(&record.job), (app.world)());
    let schedules = record.schedules().map(|(id, schedule)| {
        let cursor = around.cursors(&record.id).iter().find(|cursor| cursor.schedule == *id);
        ScheduleSummary {
            id: id.to_string(),
            text: schedule.spec.to_string(),
            words: schedule.spec.words(record.id.as_str()),
            enabled: schedule.enabled,
            next: cursor.and_then(|cursor| around.next(cursor, job.paused)),
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

/// What tells a job in one revision apart from all others.
pub(crate) fn etag(record: &JobRecord) -> String {
    format!("\"{}-{}\"", record.uid, record.revision)
}

async fn latest(app: &AppState, job: &JobId) -> Result<Option<RunSummary>, Fault> {
    let Some(run) = latest_run(&*app.store, job).await? else { return Ok(None) };
    Ok(Some(node_names::tell(&*app.store, &run).await?))
}

fn told_pause(pauses: &PauseState, everything: bool) -> Option<PauseSummary> {
    let pause = pauses.current.as_ref()?;
    let by = match &pause.by {
        Actor::Operator(name) => name.clone(),
        other => other.to_string(),
    };
    Some(PauseSummary { since: pause.since, by, why: pause.why.clone(), everything })
}

#[cfg(test)]
mod tests {
    use cronhold_core::JobUid;
    use cronhold_core::command::{Command, Precondition};
    use cronhold_core::record::JobSource;
    use cronhold_jobfile::{Options, read_stored_job};

    use super::*;
    use crate::testing::with_rig;

    /// A job that another version accepted is stored: it is not refused, but reported wherever jobs are shown.
    #[test]
    fn stored_job_with_unsupported_action_keeps_its_schedule_and_has_an_error() {
        with_rig("describe-unsupported", async |rig| {
            let text = "{program: {noop: 0s}, schedule: '@hourly', on: {failure: [{email: {to: ops@example.org}}]}}";
            let job = read_stored_job("backup", text, &Options::default()).job.expect("a stored job");
            let (id, uid) = (JobId::parse("backup").expect("an id"), JobUid::from_bits(1));
            let (job, source) = (Arc::new(job), JobSource::Api);
            let command = Command::PutJob { id, job, source, uid, provided: Precondition::Any };
            rig.app.ask(Actor::Operator("test".to_owned()), command).await.expect("stored");
            let shown = rig.ask("GET /api/v1/jobs/backup", "").await.json();
            assert!(shown["next"].is_string(), "{shown}");
            assert_eq!(shown["errors"][0]["message"], "`email` actions are not supported by this version");
            let line = shown["errors"][0]["line"].as_u64().and_then(|line| usize::try_from(line).ok()).expect("a line");
            let yaml = shown["yaml"].as_str().expect("a text");
            assert_eq!(yaml.lines().nth(line - 1).map(str::trim), Some("- email:"), "{yaml}");

            let refused = rig.send("PUT /api/v1/jobs/backup", &shown["definition"].to_string()).await;
            assert_eq!(refused.problem().0, 422);
            assert!(refused.text.contains("`email` actions are not supported"), "{}", refused.text);
        });
    }
}

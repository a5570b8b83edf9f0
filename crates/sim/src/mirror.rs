//! What the store holds, kept beside it commit by commit, so that a checker can compare each change with what was
//! there before. Runs stay here after retention has let them go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::decision::Change;
use cronhold_core::record::{Backlog, Cursor, JobRecord, JobState, Key, LockName, Pauses, Record, Run, ScheduleId};
use cronhold_core::{JobId, RunId};
use cronhold_store::Unit;

/// What the store holds.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    /// All jobs.
    pub(crate) jobs: BTreeMap<JobId, Arc<JobRecord>>,
    /// The sets of runs of all jobs.
    pub(crate) states: BTreeMap<JobId, Arc<JobState>>,
    /// The cursors of all schedules.
    pub(crate) cursors: BTreeMap<(JobId, ScheduleId), Arc<Cursor>>,
    /// The backlogs of all schedules.
    pub(crate) backlogs: BTreeMap<(JobId, ScheduleId), Arc<Backlog>>,
    /// Whether everything is paused.
    pub(crate) pauses: Arc<Pauses>,
    /// All runs that ever were, each as it was last.
    pub(crate) runs: BTreeMap<RunId, Arc<Run>>,
    /// Runs that are not finished, by job.
    pub(crate) unfinished: BTreeMap<JobId, BTreeSet<RunId>>,
    /// Runs that retention has let go.
    pub(crate) gone: BTreeSet<RunId>,
    /// Who holds which lock.
    pub(crate) locks: BTreeMap<LockName, RunId>,
}

impl Mirror {
    /// Takes in a unit that was done.
    pub(crate) fn apply(&mut self, unit: &Unit) {
        for change in &unit.changes {
            match change {
                Change::Put(record) => self.put(record),
                Change::Delete(key) => self.delete(key),
            }
        }
        for free in &unit.free {
            if self.locks.get(&free.lock) == Some(&free.holder) {
                self.locks.remove(&free.lock);
            }
        }
        for take in &unit.take {
            self.locks.insert(take.lock.clone(), take.holder);
        }
    }

    /// Whether a job or everything is paused.
    pub(crate) fn is_paused(&self, job: &JobId) -> bool {
        self.pauses.is_paused() || self.states.get(job).is_some_and(|state| state.pauses.is_paused())
    }

    /// The runs of a job that are not finished.
    pub(crate) fn unfinished(&self, job: &JobId) -> impl Iterator<Item = &Arc<Run>> {
        self.unfinished.get(job).into_iter().flatten().filter_map(|run| self.runs.get(run))
    }

    /// Whether nothing is on its way any more and no occurrence is to come.
    pub(crate) fn is_quiet(&self) -> bool {
        let is_ahead = |cursor: &Arc<Cursor>| cursor.next.is_some();
        self.unfinished.is_empty() && self.backlogs.is_empty() && !self.cursors.values().any(is_ahead)
    }

    /// What keeps the store from being quiet, in words.
    pub(crate) fn pending(&self) -> String {
        let runs = self.unfinished.values().flatten().filter_map(|run| self.runs.get(run));
        let runs = runs.map(|run| format!("{} is {}", name(run), run.state));
        let backlogs = self.backlogs.values().map(|backlog| format!("{} has a backlog", backlog.job));
        let ahead = self.cursors.values().filter_map(|cursor| Some((cursor, cursor.next?)));
        let ahead = ahead.map(|(cursor, next)| format!("{} {} is to come", cursor.job, next));
        runs.chain(backlogs).chain(ahead).collect::<Vec<_>>().join(", ")
    }

    fn put(&mut self, record: &Record) {
        match record {
            Record::Pause(pauses) => self.pauses = Arc::clone(pauses),
            Record::Job(job) => drop(self.jobs.insert(job.id.clone(), Arc::clone(job))),
            Record::JobState(state) => drop(self.states.insert(state.job.clone(), Arc::clone(state))),
            Record::Cursor(cursor) => {
                self.cursors.insert((cursor.job.clone(), cursor.schedule.clone()), Arc::clone(cursor));
            }
            Record::Backlog(backlog) => {
                self.backlogs.insert((backlog.job.clone(), backlog.schedule.clone()), Arc::clone(backlog));
            }
            Record::Run(run) => {
                self.runs.insert(run.id, Arc::clone(run));
                if run.state.is_finished() {
                    self.finish(run);
                } else {
                    self.unfinished.entry(run.job.clone()).or_default().insert(run.id);
                }
            }
            Record::Identity(_) | Record::Lock(_) | Record::Node(_) => {}
        }
    }

    fn delete(&mut self, key: &Key) {
        match key {
            Key::Job(job) => drop(self.jobs.remove(job)),
            Key::JobState(job) => drop(self.states.remove(job)),
            Key::Cursor(job, schedule) => drop(self.cursors.remove(&(job.clone(), schedule.clone()))),
            Key::Backlog(job, schedule) => drop(self.backlogs.remove(&(job.clone(), schedule.clone()))),
            Key::Run(run) => drop(self.gone.insert(*run)),
            Key::Pause => self.pauses = Arc::default(),
            Key::Identity(..) | Key::Lock(_) | Key::Node(_) => {}
        }
    }

    fn finish(&mut self, run: &Run) {
        if let Some(runs) = self.unfinished.get_mut(&run.job) {
            runs.remove(&run.id);
            if runs.is_empty() {
                self.unfinished.remove(&run.job);
            }
        }
    }
}

/// What people call a run.
pub(crate) fn name(run: &Run) -> String {
    format!("{}#{}", run.job, run.number)
}

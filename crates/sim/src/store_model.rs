//! What the store holds, kept beside it commit by commit, so that a checker can compare each change with what was
//! there before. Runs stay here after retention has let them go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{
    Backlog, Cursor, JobRecord, JobState, LockName, NodeRecord, PauseState, Record, RecordKey, Run, ScheduleId,
    SkipSpan,
};
use cronhold_core::{JobId, NodeId, RunId};
use cronhold_schedule::{Instant, Span};
use cronhold_store::Unit;

/// What the store holds.
#[derive(Debug, Default)]
pub(crate) struct StoreModel {
    /// All jobs.
    pub(crate) jobs: BTreeMap<JobId, Arc<JobRecord>>,
    /// The sets of runs of all jobs.
    pub(crate) states: BTreeMap<JobId, Arc<JobState>>,
    /// The cursors of all schedules.
    pub(crate) cursors: BTreeMap<(JobId, ScheduleId), Arc<Cursor>>,
    /// The backlogs of all schedules.
    pub(crate) backlogs: BTreeMap<(JobId, ScheduleId), Arc<Backlog>>,
    /// Whether everything is paused.
    pub(crate) pauses: Arc<PauseState>,
    /// All runs that ever were, each as it was last.
    pub(crate) runs: BTreeMap<RunId, Arc<Run>>,
    /// All spans of skips that ever were, each as it was last.
    pub(crate) spans: BTreeMap<RunId, Arc<SkipSpan>>,
    /// Which runs are of which job.
    pub(crate) of_job: BTreeMap<JobId, BTreeSet<RunId>>,
    /// Runs that are not finished, by job.
    pub(crate) unfinished: BTreeMap<JobId, BTreeSet<RunId>>,
    /// Runs and spans that retention has let go.
    pub(crate) gone: BTreeSet<RunId>,
    /// Who took which lock and has not freed it.
    pub(crate) locks: BTreeMap<LockName, ModelLock>,
    /// All nodes that were ever heard of.
    pub(crate) nodes: BTreeMap<NodeId, Arc<NodeRecord>>,
    /// Cursors that have an occurrence to come.
    ahead: BTreeSet<(JobId, ScheduleId)>,
}

/// A lock that somebody took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModelLock {
    /// For which run.
    pub(crate) by: RunId,
    /// How long it is held without being renewed.
    pub(crate) ttl: Option<Span>,
    /// When it is free unless it is renewed.
    pub(crate) until: Option<Instant>,
}

impl StoreModel {
    /// Takes in a unit that was done when the store's clock said so.
    pub(crate) fn apply(&mut self, unit: &Unit, now: Instant) {
        for change in &unit.changes {
            match change {
                RecordChange::Put(record) => self.put(record),
                RecordChange::Delete(key) => self.delete(key),
            }
        }
        for free in &unit.free {
            if self.locks.get(&free.lock).is_some_and(|held| held.by == free.holder) {
                self.locks.remove(&free.lock);
            }
        }
        for take in &unit.take {
            let held = ModelLock { by: take.holder, ttl: take.ttl, until: take.ttl.map(|ttl| now.plus(ttl)) };
            self.locks.insert(take.lock.clone(), held);
        }
    }

    /// Takes in that a node said it is alive, and which locks it has renewed.
    pub(crate) fn beat(&mut self, node: &Arc<NodeRecord>, renewed: &[(LockName, RunId)], now: Instant) {
        self.nodes.insert(node.id, Arc::clone(node));
        for (lock, run) in renewed {
            if let Some(held) = self.locks.get_mut(lock).filter(|held| held.by == *run) {
                held.until = held.ttl.map(|ttl| now.plus(ttl));
            }
        }
    }

    /// Who holds a lock.
    pub(crate) fn holder(&self, lock: &LockName, now: Instant) -> Option<RunId> {
        let lasts = |held: &&ModelLock| held.until.is_none_or(|until| now < until);
        self.locks.get(lock).filter(lasts).map(|held| held.by)
    }

    /// Whether a job or everything is paused.
    pub(crate) fn is_paused(&self, job: &JobId) -> bool {
        self.pauses.is_paused() || self.states.get(job).is_some_and(|state| state.pauses.is_paused())
    }

    /// All runs of a job that ever were.
    pub(crate) fn runs_of(&self, job: &JobId) -> impl Iterator<Item = &Arc<Run>> {
        self.of_job.get(job).into_iter().flatten().filter_map(|run| self.runs.get(run))
    }

    /// All spans of skips of a job that ever were.
    pub(crate) fn spans_of(&self, job: &JobId) -> impl Iterator<Item = &Arc<SkipSpan>> {
        self.spans.values().filter(move |span| span.job == *job)
    }

    /// The runs of a job that are not finished.
    pub(crate) fn unfinished(&self, job: &JobId) -> impl Iterator<Item = &Arc<Run>> {
        self.unfinished.get(job).into_iter().flatten().filter_map(|run| self.runs.get(run))
    }

    /// Whether nothing is on its way any more and no occurrence is to come.
    pub(crate) fn is_quiet(&self) -> bool {
        let is_over = self.backlogs.is_empty() && self.ahead.is_empty();
        is_over && self.unfinished.values().flatten().all(|run| self.is_stuck(*run))
    }

    /// Whether a run waits for a node that there is not: none has the labels of its job, or its own is gone. Whoever
    /// wanted it has to see to that.
    fn is_stuck(&self, run: RunId) -> bool {
        let Some(run) = self.runs.get(&run).filter(|run| !run.state.has_program()) else { return false };
        let job = self.jobs.get(&run.job).filter(|job| job.uid == run.uid);
        let may = |node: &NodeRecord| run.target.is_none_or(|target| target == node.id);
        job.is_some_and(|job| !self.nodes.values().any(|node| may(node) && job.job.nodes.allow(&node.labels)))
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
            Record::Node(node) => drop(self.nodes.insert(node.id, Arc::clone(node))),
            Record::Cursor(cursor) => {
                let key = (cursor.job.clone(), cursor.schedule.clone());
                if cursor.next.is_some() {
                    self.ahead.insert(key.clone());
                } else {
                    self.ahead.remove(&key);
                }
                self.cursors.insert(key, Arc::clone(cursor));
            }
            Record::Backlog(backlog) => {
                self.backlogs.insert((backlog.job.clone(), backlog.schedule.clone()), Arc::clone(backlog));
            }
            Record::Run(run) => self.put_run(run),
            Record::SkipSpan(span) => drop(self.spans.insert(span.id, Arc::clone(span))),
            Record::Identity(_) | Record::Lock(_) | Record::Foreign(_) => {}
        }
    }

    fn put_run(&mut self, run: &Arc<Run>) {
        if self.runs.insert(run.id, Arc::clone(run)).is_none() {
            self.of_job.entry(run.job.clone()).or_default().insert(run.id);
        }
        if run.state.is_finished() {
            self.finish(run);
        } else {
            self.unfinished.entry(run.job.clone()).or_default().insert(run.id);
        }
    }

    fn delete(&mut self, key: &RecordKey) {
        match key {
            RecordKey::Job(job) => drop(self.jobs.remove(job)),
            RecordKey::JobState(job) => drop(self.states.remove(job)),
            RecordKey::Cursor(job, schedule) => {
                let key = (job.clone(), schedule.clone());
                self.cursors.remove(&key);
                self.ahead.remove(&key);
            }
            RecordKey::Backlog(job, schedule) => drop(self.backlogs.remove(&(job.clone(), schedule.clone()))),
            RecordKey::Run(run) | RecordKey::SkipSpan(run) => drop(self.gone.insert(*run)),
            RecordKey::Pause => self.pauses = Arc::default(),
            RecordKey::Node(node) => drop(self.nodes.remove(node)),
            RecordKey::Identity(..) | RecordKey::Lock(_) | RecordKey::Foreign(_) => {}
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

/// What people call a span of skips.
pub(crate) fn span_name(span: &SkipSpan) -> String {
    format!("{}#{}", span.job, span.number)
}

/// What people call a run of which maybe no more is known than its id.
pub(crate) fn name_of(model: &StoreModel, run: RunId) -> String {
    model.runs.get(&run).map_or_else(|| run.to_string(), |run| name(run))
}

//! A model of the store, updated with every commit, so that checkers can compare each change with the state before it.
//! The model keeps runs that retention has deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::check::is_owed;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{
    ActionId, ActionRecord, Backlog, Cursor, Identity, JobRecord, JobState, LockName, NodeRecord, PauseState, Pool,
    PoolName, Record, RecordKey, Run, ScheduleId, SkipSpan, TriggerSet,
};
use cronhold_core::{Args, JobId, NodeId, RunId};
use cronhold_schedule::{Instant, Span};
use cronhold_store::Unit;

/// The contents of the store.
#[derive(Debug, Default)]
pub(crate) struct StoreModel {
    pub(crate) jobs: BTreeMap<JobId, Arc<JobRecord>>,
    /// Active and queued runs, by job.
    pub(crate) states: BTreeMap<JobId, Arc<JobState>>,
    pub(crate) cursors: BTreeMap<(JobId, ScheduleId), Arc<Cursor>>,
    pub(crate) backlogs: BTreeMap<(JobId, ScheduleId), Arc<Backlog>>,
    /// The pause of all jobs.
    pub(crate) pauses: Arc<PauseState>,
    /// All runs that ever existed, in their last state.
    pub(crate) runs: BTreeMap<RunId, Arc<Run>>,
    /// All spans of skips that were ever written, including deleted ones, each in its last version.
    pub(crate) spans: BTreeMap<RunId, Arc<SkipSpan>>,
    /// All runs, by job.
    pub(crate) of_job: BTreeMap<JobId, BTreeSet<RunId>>,
    /// Unfinished runs, by job.
    pub(crate) unfinished: BTreeMap<JobId, BTreeSet<RunId>>,
    /// Runs and spans of skips that retention has deleted.
    pub(crate) gone: BTreeSet<RunId>,
    /// Locks that were taken and not released.
    pub(crate) locks: BTreeMap<LockName, ModelLock>,
    /// All nodes that ever sent a heartbeat.
    pub(crate) nodes: BTreeMap<NodeId, Arc<NodeRecord>>,
    /// The latest outcomes of jobs with certain args.
    pub(crate) pools: BTreeMap<PoolName, Arc<Pool>>,
    pub(crate) identities: BTreeMap<(JobId, Args), Arc<Identity>>,
    /// The actions of runs.
    pub(crate) actions: BTreeMap<ActionId, Arc<ActionRecord>>,
    /// The pending triggers of jobs, and what became of the others.
    pub(crate) triggers: BTreeMap<JobId, Arc<TriggerSet>>,
    /// Cursors with a next occurrence.
    ahead: BTreeSet<(JobId, ScheduleId)>,
}

/// A lock that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModelLock {
    /// The run that holds it.
    pub(crate) by: RunId,
    /// Time to live without renewal.
    pub(crate) ttl: Option<Span>,
    /// When it expires unless it is renewed.
    pub(crate) until: Option<Instant>,
}

impl StoreModel {
    /// Applies a unit that was committed at `now`, by the store's clock.
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

    /// Applies a heartbeat of a node and the locks that it renewed.
    pub(crate) fn beat(&mut self, node: &Arc<NodeRecord>, renewed: &[(LockName, RunId)], now: Instant) {
        self.nodes.insert(node.id, Arc::clone(node));
        for (lock, run) in renewed {
            if let Some(held) = self.locks.get_mut(lock).filter(|held| held.by == *run) {
                held.until = held.ttl.map(|ttl| now.plus(ttl));
            }
        }
    }

    /// The run that holds a lock.
    pub(crate) fn holder(&self, lock: &LockName, now: Instant) -> Option<RunId> {
        let lasts = |held: &&ModelLock| held.until.is_none_or(|until| now < until);
        self.locks.get(lock).filter(lasts).map(|held| held.by)
    }

    /// Whether a job or all jobs are paused at a time.
    pub(crate) fn is_paused(&self, job: &JobId, now: Instant) -> bool {
        self.pauses.is_paused_at(now) || self.states.get(job).is_some_and(|state| state.pauses.is_paused_at(now))
    }

    /// Whether a pause of a job or of all jobs is recorded, even if its time has passed.
    pub(crate) fn has_pause(&self, job: &JobId) -> bool {
        self.pauses.is_paused() || self.states.get(job).is_some_and(|state| state.pauses.is_paused())
    }

    /// All runs of a job that ever existed.
    pub(crate) fn runs_of(&self, job: &JobId) -> impl Iterator<Item = &Arc<Run>> {
        self.of_job.get(job).into_iter().flatten().filter_map(|run| self.runs.get(run))
    }

    /// All spans of skips of a job, including deleted ones.
    pub(crate) fn spans_of(&self, job: &JobId) -> impl Iterator<Item = &Arc<SkipSpan>> {
        self.spans.values().filter(move |span| span.job == *job)
    }

    /// The unfinished runs of a job.
    pub(crate) fn unfinished(&self, job: &JobId) -> impl Iterator<Item = &Arc<Run>> {
        self.unfinished.get(job).into_iter().flatten().filter_map(|run| self.runs.get(run))
    }

    /// Whether no run, backlog, action, trigger or future occurrence is pending, except for runs that no node can start.
    pub(crate) fn is_quiet(&self) -> bool {
        let is_over = self.backlogs.is_empty() && self.ahead.is_empty() && !self.actions.values().any(|it| is_owed(it));
        let is_over = is_over && !self.triggers.values().any(|set| self.may_batch(set));
        is_over && self.unfinished.values().flatten().all(|run| self.is_stuck(*run))
    }

    /// Whether a run waits for a node that does not exist: none has the labels of its job, or its target is gone. Only
    /// an operator can resolve that.
    fn is_stuck(&self, run: RunId) -> bool {
        let Some(run) = self.runs.get(&run).filter(|run| !run.state.has_program()) else { return false };
        let job = self.jobs.get(&run.job).filter(|job| job.uid == run.uid);
        let may = |node: &NodeRecord| run.target.is_none_or(|target| target == node.id);
        job.is_some_and(|job| !self.nodes.values().any(|node| may(node) && job.job.nodes.allow(&node.labels)))
    }

    /// Whether a set has pending triggers that a node can turn into runs.
    pub(crate) fn may_batch(&self, set: &TriggerSet) -> bool {
        let can_run = |job: &Arc<JobRecord>| self.nodes.values().any(|node| job.job.nodes.allow(&node.labels));
        !set.pending.is_empty() && self.jobs.get(&set.job).is_some_and(can_run)
    }

    /// Describes what is still pending.
    pub(crate) fn pending(&self) -> String {
        let runs = self.unfinished.values().flatten().filter_map(|run| self.runs.get(run));
        let runs = runs.map(|run| format!("{} is {}", name(run), run.state));
        let backlogs = self.backlogs.values().map(|backlog| format!("{} has a backlog", backlog.job));
        let ahead = self.cursors.values().filter_map(|cursor| Some((cursor, cursor.next?)));
        let ahead = ahead.map(|(cursor, next)| format!("{} {} is to come", cursor.job, next));
        let actions = self.actions.values().filter(|action| is_owed(action));
        let actions = actions.map(|action| format!("action {} of {} is not done", action.id, action.job));
        let sets = self.triggers.values().filter(|set| self.may_batch(set));
        let triggers = sets.map(|set| format!("{} triggers of {} are pending", set.pending.len(), set.job));
        runs.chain(backlogs).chain(actions).chain(triggers).chain(ahead).collect::<Vec<_>>().join(", ")
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
            Record::SkipSpan(span) => {
                self.gone.remove(&span.id);
                self.spans.insert(span.id, Arc::clone(span));
            }
            Record::Identity(identity) => {
                self.identities.insert((identity.job.clone(), identity.args.clone()), Arc::clone(identity));
            }
            Record::Action(action) => drop(self.actions.insert(action.id, Arc::clone(action))),
            Record::Pool(pool) => drop(self.pools.insert(pool.name.clone(), Arc::clone(pool))),
            Record::Triggers(set) => drop(self.triggers.insert(set.job.clone(), Arc::clone(set))),
            Record::Lock(_) | Record::Foreign(_) => {}
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
            RecordKey::Identity(job, args) => drop(self.identities.remove(&(job.clone(), args.clone()))),
            RecordKey::Action(action) => drop(self.actions.remove(action)),
            RecordKey::Pool(pool) => drop(self.pools.remove(pool)),
            RecordKey::Triggers(job) => drop(self.triggers.remove(job)),
            RecordKey::Lock(_) | RecordKey::Foreign(_) => {}
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

/// The name of a run, such as `backup#3`.
pub(crate) fn name(run: &Run) -> String {
    format!("{}#{}", run.job, run.number)
}

/// The name of a span of skips.
pub(crate) fn span_name(span: &SkipSpan) -> String {
    format!("{}#{}", span.job, span.number)
}

/// The name of a run; its id if the model does not contain it.
pub(crate) fn name_of(model: &StoreModel, run: RunId) -> String {
    model.runs.get(&run).map_or_else(|| run.to_string(), |run| name(run))
}

//! The unit of work that a decision builds. Records that a decision changes more than once are changed here, so each is
//! written once and every step reads what the steps before it have written.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_schedule::{Instant, Span};

use super::actions;
use crate::args::Args;
use crate::decision::{CommandReply, DecidedUnit, Effect, LockRelease, LockTake, RecordChange, Rejection};
use crate::ids::{JobId, RunId};
use crate::policy::action_filter::OutcomeStep;
use crate::record::{
    Cursor, Identity, JobRecord, JobState, LatestOutcomes, LockName, Pool, PoolName, Record, RecordKey, RenameProgress,
    Run, ScheduleId, SkipSpan, TriggerSet,
};
use crate::view::{DecisionView, Halt, RecordOversize};

/// Records of a unit from which on its size is compared with what the store writes together. Units with fewer records are
/// far below it, and are too frequent to be measured.
const LARGE_UNIT: usize = 16;

/// A unit of work that is being built.
pub(super) struct UnitDraft<'a> {
    pub(super) view: &'a DecisionView<'a>,
    /// The latest change of each record.
    written: BTreeMap<RecordKey, RecordChange>,
    take: Vec<LockTake>,
    free: Vec<LockRelease>,
    effects: Vec<Effect>,
    /// How the outcomes of runs that end in this unit follow those before them.
    outcome_steps: BTreeMap<RunId, OutcomeStep>,
}

impl<'a> UnitDraft<'a> {
    pub(super) fn new(view: &'a DecisionView<'a>) -> Self {
        Self {
            view,
            written: BTreeMap::new(),
            take: Vec::new(),
            free: Vec::new(),
            effects: Vec::new(),
            outcome_steps: BTreeMap::new(),
        }
    }

    /// The time of the decision.
    pub(super) fn at(&self) -> Instant {
        self.view.stamp.at
    }

    /// A run as this unit leaves it so far.
    pub(super) fn run(&self, id: RunId) -> Option<Arc<Run>> {
        match self.written.get(&RecordKey::Run(id)) {
            Some(RecordChange::Put(Record::Run(run))) => Some(Arc::clone(run)),
            Some(_) => None,
            None => self.view.run(id),
        }
    }

    /// The runs that this unit writes, as it leaves them so far.
    pub(super) fn written_runs(&self) -> Vec<Arc<Run>> {
        let runs = self.written.values().filter_map(|change| match change {
            RecordChange::Put(Record::Run(run)) => Some(Arc::clone(run)),
            _ => None,
        });
        runs.collect()
    }

    /// The spans of skips that this unit creates.
    pub(super) fn created_spans(&self) -> Vec<Arc<SkipSpan>> {
        let spans = self.written.values().filter_map(|change| match change {
            RecordChange::Put(Record::SkipSpan(span)) => Some(Arc::clone(span)),
            _ => None,
        });
        spans.filter(|span| !self.view.has_loaded_span(span.id)).collect()
    }

    /// How the outcome of a run that ends in this unit follows those before it; `None` if it is not an outcome.
    pub(super) fn outcome_step(&self, run: RunId) -> Option<&OutcomeStep> {
        self.outcome_steps.get(&run)
    }

    pub(super) fn set_outcome_step(&mut self, run: RunId, step: OutcomeStep) {
        self.outcome_steps.insert(run, step);
    }

    /// A job as it is stored and compared by the commit, or as this unit creates it. What happens to runs in the unit that
    /// changes or removes a job follows the definition that they had.
    pub(super) fn job(&self, id: &JobId) -> Option<Arc<JobRecord>> {
        self.view.job(id).or_else(|| self.created_job(id))
    }

    /// Like [`Self::job`], as it is known; see [`DecisionView::known_job`].
    pub(super) fn known_job(&self, id: &JobId) -> Option<Arc<JobRecord>> {
        self.view.known_job(id).cloned().or_else(|| self.created_job(id))
    }

    fn created_job(&self, id: &JobId) -> Option<Arc<JobRecord>> {
        match self.written.get(&RecordKey::Job(id.clone())) {
            Some(RecordChange::Put(Record::Job(job))) => Some(Arc::clone(job)),
            _ => None,
        }
    }

    /// A span of skips as this unit leaves it so far.
    pub(super) fn skip_span(&self, id: RunId) -> Option<Arc<SkipSpan>> {
        match self.written.get(&RecordKey::SkipSpan(id)) {
            Some(RecordChange::Put(Record::SkipSpan(span))) => Some(Arc::clone(span)),
            Some(_) => None,
            None => self.view.skip_span(id),
        }
    }

    /// A job's set of runs as this unit leaves it so far.
    pub(super) fn job_state(&self, job: &JobId) -> JobState {
        match self.written.get(&RecordKey::JobState(job.clone())) {
            Some(RecordChange::Put(Record::JobState(state))) => (**state).clone(),
            _ => (*self.view.job_state(job)).clone(),
        }
    }

    /// A cursor as this unit leaves it so far.
    pub(super) fn cursor(&self, job: &JobId, schedule: &ScheduleId) -> Option<Cursor> {
        match self.written.get(&RecordKey::Cursor(job.clone(), schedule.clone())) {
            Some(RecordChange::Put(Record::Cursor(cursor))) => Some((**cursor).clone()),
            Some(_) => None,
            None => self.view.cursor(job, schedule).map(|cursor| (*cursor).clone()),
        }
    }

    /// The latest outcomes of a job with these args, as this unit leaves them so far. `state` is the state of the job.
    pub(super) fn outcomes(&self, state: &JobState, args: &Args) -> LatestOutcomes {
        let in_state = state.outcomes.filter(|_| args.is_empty());
        in_state.unwrap_or_else(|| match self.written.get(&RecordKey::Identity(state.job.clone(), args.clone())) {
            Some(RecordChange::Put(Record::Identity(identity))) => identity.outcomes,
            _ => self.stored_outcomes(state, args),
        })
    }

    /// The outcomes in the identity of a job and args. During a rename they may still have the old name.
    fn stored_outcomes(&self, state: &JobState, args: &Args) -> LatestOutcomes {
        match &state.renaming {
            Some(RenameProgress::From(old))
                if self.view.stored(&RecordKey::Identity(state.job.clone(), args.clone())).is_none() =>
            {
                self.view.identity(old, args).outcomes
            }
            _ => self.view.identity(&state.job, args).outcomes,
        }
    }

    /// Sets the latest outcomes of a job with these args.
    pub(super) fn set_outcomes(&mut self, state: &mut JobState, args: &Args, outcomes: LatestOutcomes) {
        let (job, args) = (state.job.clone(), args.clone());
        if !args.is_empty() {
            return self.put(Record::Identity(Arc::new(Identity { job, args, outcomes })));
        }
        // An earlier version has stored them in an identity, which is deleted when they come into the state.
        let earlier = RecordKey::Identity(job, args);
        if state.outcomes.is_none() && self.view.stored(&earlier).is_some() {
            self.delete(earlier);
        }
        state.outcomes = Some(outcomes);
    }

    /// A pool as this unit leaves it so far.
    pub(super) fn pool(&self, name: &PoolName) -> Pool {
        match self.written.get(&RecordKey::Pool(name.clone())) {
            Some(RecordChange::Put(Record::Pool(pool))) => (**pool).clone(),
            Some(_) => Pool::new(name.clone()),
            None => (*self.view.pool(name)).clone(),
        }
    }

    /// Writes a pool. One without active runs is deleted.
    pub(super) fn put_pool(&mut self, pool: Pool) {
        let key = RecordKey::Pool(pool.name.clone());
        if !pool.active.is_empty() {
            return self.put(Record::Pool(Arc::new(pool)));
        }
        match self.view.stored(&key) {
            Some(_) => self.delete(key),
            None => drop(self.written.remove(&key)),
        }
    }

    /// Writes the pending triggers of a job, and whether there are any in the state of the job.
    pub(super) fn put_triggers(&mut self, set: TriggerSet, state: &mut JobState) {
        state.has_triggers = !set.pending.is_empty();
        self.put(Record::Triggers(Arc::new(set)));
    }

    pub(super) fn put_run(&mut self, run: Run) {
        self.put(Record::Run(Arc::new(run)));
    }

    pub(super) fn put_skip_span(&mut self, span: SkipSpan) {
        self.put(Record::SkipSpan(Arc::new(span)));
    }

    pub(super) fn put_state(&mut self, state: JobState) {
        self.put(Record::JobState(Arc::new(state)));
    }

    pub(super) fn put_cursor(&mut self, cursor: Cursor) {
        self.put(Record::Cursor(Arc::new(cursor)));
    }

    pub(super) fn put(&mut self, record: Record) {
        self.written.insert(record.key(), RecordChange::Put(record));
    }

    pub(super) fn delete(&mut self, key: RecordKey) {
        self.written.insert(key.clone(), RecordChange::Delete(key));
    }

    pub(super) fn take_lock(&mut self, lock: LockName, holder: RunId, ttl: Option<Span>) {
        self.take.push(LockTake { lock, holder, ttl });
    }

    pub(super) fn release_lock(&mut self, lock: LockName, holder: RunId) {
        self.free.push(LockRelease { lock, holder });
    }

    /// Adds an effect that no record owes. It is lost without harm if the node dies after the commit.
    pub(super) fn emit(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// The finished unit, with the actions that it causes. The commit compares written records too: one that the decision
    /// has not read must not exist.
    pub(super) fn finish(mut self, answer: CommandReply) -> Result<DecidedUnit, Halt> {
        self.view.require_loaded()?;
        actions::add_actions(&mut self);
        self.view.require_loaded()?;
        for key in self.written.keys() {
            self.view.compare(key);
        }
        let Self { view, written, take, free, effects, .. } = self;
        let changes: Vec<RecordChange> = written.into_values().collect();
        if changes.len() >= LARGE_UNIT
            && let Some(RecordOversize { size, limit }) = view.unit_oversize(&changes)
        {
            return Err(Rejection::ChangeTooLarge { count: changes.len(), size, limit }.into());
        }
        Ok(DecidedUnit { changes, take, free, effects, answer })
    }
}

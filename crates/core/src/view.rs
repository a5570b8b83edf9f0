//! What a decision sees: the records that were loaded for it, the decision context, and the stamp of its command.
//!
//! The view records which keys a decision reads, because the commit compares exactly those. A record that is not loaded
//! yet reads as absent and is noted as missing, and the decision continues. So one pass finds as many of the missing
//! records as it can reach, and [`decide`](crate::decide::decide) discards the result of a pass with missing records.
//! No decision has to declare in advance what it reads.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::args::Args;
use crate::command::CommandStamp;
use crate::decision::{RecordChange, Rejection};
use crate::ids::{JobId, NodeId, RunId};
use crate::job::Retain;
use crate::record::{
    ActionId, ActionRecord, Backlog, Cursor, ForeignRun, Identity, JobRecord, JobState, LockName, LockState,
    NodeRecord, PauseState, Pool, PoolName, Record, RecordKey, RecordKind, RecordVersion, Run, ScheduleId, SkipSpan,
    StoredRecord, TriggerSet,
};
use crate::run::State;
use crate::world::DecisionContext;

/// Records that were loaded. `None` means that the record is not loaded yet; `Some(None)` means that it does not exist.
pub trait RecordSource {
    /// The record of a key, if it is loaded.
    fn get(&self, key: &RecordKey) -> Option<Option<&StoredRecord>>;

    /// Whether the record exists and cannot be read, but can be replaced or deleted. [`Self::get`] returns `None` for it.
    fn is_unreadable(&self, _key: &RecordKey) -> bool {
        false
    }

    /// The number of finished runs of a job in each state that the store keeps at most; `None` if it sets no limit.
    fn kept_max(&self) -> Option<u32> {
        None
    }

    /// The size of a record that is too large for the store; `None` if the store can keep it.
    fn oversize(&self, _record: &Record) -> Option<RecordOversize> {
        None
    }

    /// The size of changes that are too large for one unit; `None` if the store can write them together.
    fn unit_oversize(&self, _changes: &[RecordChange]) -> Option<RecordOversize> {
        None
    }
}

/// The size of a record, or of the changes of a unit, that is too large for a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordOversize {
    /// The size in bytes.
    pub size: u64,
    /// The size that the store keeps at most.
    pub limit: u64,
}

/// Why a decision stops before its end.
#[derive(Debug, Clone, PartialEq)]
pub enum Halt {
    /// Records that it has read are not loaded yet; [`DecisionView::missing`] lists them.
    MissingRecords,
    /// The command is rejected.
    Reject(Rejection),
}

impl<R: Into<Rejection>> From<R> for Halt {
    fn from(rejection: R) -> Self {
        Self::Reject(rejection.into())
    }
}

/// What a decision sees.
#[allow(missing_debug_implementations, clippy::allow_attributes, reason = "the records need not be printable")]
pub struct DecisionView<'a> {
    /// Zone data, calendars and the node's labels.
    pub world: &'a DecisionContext,
    /// The time, the actor and the node of the command.
    pub stamp: &'a CommandStamp,
    records: &'a dyn RecordSource,
    /// The keys that were read, with the version of a record that is listed and not loaded.
    reads: RefCell<BTreeMap<RecordKey, Option<RecordVersion>>>,
    missing: RefCell<BTreeSet<RecordKey>>,
    /// Kinds of records that the decision replaces if they cannot be read.
    replaced: Cell<&'static [RecordKind]>,
}

macro_rules! typed {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $record:ident, $key:expr, $variant:ident) => {
        $(#[$doc])*
        pub fn $name(&self, $($argument: $type),*) -> Option<Arc<$record>> {
            match self.stored(&$key)? {
                StoredRecord { record: Record::$variant(record), .. } => Some(Arc::clone(record)),
                other => unreachable!("the store returned for {} the record {:?}", $key, other.record),
            }
        }
    };
}

impl<'a> DecisionView<'a> {
    /// A view of loaded records.
    pub fn new(records: &'a dyn RecordSource, world: &'a DecisionContext, stamp: &'a CommandStamp) -> Self {
        Self { world, stamp, records, reads: RefCell::default(), missing: RefCell::default(), replaced: Cell::new(&[]) }
    }

    /// The keys that the decision read, with the version that it assumed for a record that is not loaded.
    pub fn into_reads(self) -> BTreeMap<RecordKey, Option<RecordVersion>> {
        self.reads.into_inner()
    }

    /// The keys that the decision read and that are not loaded. While there are any, its result must be discarded.
    pub fn missing(&self) -> Vec<RecordKey> {
        self.missing.borrow().iter().cloned().collect()
    }

    /// Whether everything that was read so far is loaded.
    pub fn is_complete(&self) -> bool {
        self.missing.borrow().is_empty()
    }

    /// Stops the decision here if any record that it has read is not loaded, because without those records the rest of
    /// the decision would read the wrong keys.
    pub fn require_loaded(&self) -> Result<(), Halt> {
        if self.is_complete() { Ok(()) } else { Err(Halt::MissingRecords) }
    }

    /// Requests records that the decision will probably read later. This only saves a round trip: without this call the
    /// decision reads the same records.
    pub fn prefetch(&self, keys: impl IntoIterator<Item = RecordKey>) {
        let missing = keys.into_iter().filter(|key| self.records.get(key).is_none());
        self.missing.borrow_mut().extend(missing);
    }

    /// Lets the decision read unreadable records of these kinds as absent, because it replaces or deletes them. A decision
    /// that needs any other unreadable record fails.
    pub fn replace_unreadable(&self, kinds: &'static [RecordKind]) {
        self.replaced.set(kinds);
    }

    /// Whether the record exists and cannot be read, and the decision may replace or delete it.
    pub fn is_unreadable(&self, key: &RecordKey) -> bool {
        self.replaced.get().contains(&key.kind()) && self.records.is_unreadable(key)
    }

    /// The number of runs in a finished state that are kept: what the job retains, or less if the store keeps less.
    pub fn kept_limit(&self, retain: &Retain, state: State) -> u32 {
        retain.capped(self.records.kept_max()).limit(state)
    }

    /// The size of a record that is too large for the store; `None` if the store can keep it.
    pub fn oversize(&self, record: &Record) -> Option<RecordOversize> {
        self.records.oversize(record)
    }

    /// The size of changes that are too large for one unit; `None` if the store can write them together.
    pub fn unit_oversize(&self, changes: &[RecordChange]) -> Option<RecordOversize> {
        self.records.unit_oversize(changes)
    }

    /// A record as the store has it; `None` when it is absent or not loaded yet.
    pub fn stored(&self, key: &RecordKey) -> Option<&'a StoredRecord> {
        match self.records.get(key) {
            Some(stored) => {
                self.compare(key);
                stored
            }
            None if self.is_unreadable(key) => {
                self.compare(key);
                None
            }
            None => {
                self.missing.borrow_mut().insert(key.clone());
                None
            }
        }
    }

    /// A record if it is loaded. A record that is not loaded is assumed to be absent, and the commit checks that. If
    /// the assumption is wrong, the commit fails, and the decision is made again with the record loaded.
    pub fn assume_absent_unless_loaded(&self, key: &RecordKey) -> Option<&'a StoredRecord> {
        self.compare(key);
        if self.records.is_unreadable(key) && !self.is_unreadable(key) {
            self.missing.borrow_mut().insert(key.clone());
        }
        self.records.get(key).flatten()
    }

    /// Makes the commit compare a record that the decision has not read.
    pub fn compare(&self, key: &RecordKey) {
        self.reads.borrow_mut().entry(key.clone()).or_default();
    }

    /// Makes the commit compare a record with the version as which it is listed, so that it need not be loaded. Returns
    /// whether it may have that version: if the commit finds another one, the record is loaded, and the decision is made
    /// again.
    pub fn assume_version(&self, key: &RecordKey, version: RecordVersion) -> bool {
        let may_have_it = match self.records.get(key) {
            Some(stored) => stored.is_some_and(|stored| stored.version == version),
            None => !self.records.is_unreadable(key),
        };
        if may_have_it {
            self.reads.borrow_mut().insert(key.clone(), Some(version));
        }
        may_have_it
    }

    typed! {
        /// A job.
        job(id: &JobId) -> JobRecord, RecordKey::Job(id.clone()), Job
    }
    typed! {
        /// How far a schedule has come.
        cursor(job: &JobId, schedule: &ScheduleId) -> Cursor, RecordKey::Cursor(job.clone(), schedule.clone()), Cursor
    }
    typed! {
        /// The missed occurrences of a schedule that are still to be run.
        backlog(job: &JobId, schedule: &ScheduleId) -> Backlog, RecordKey::Backlog(job.clone(), schedule.clone()), Backlog
    }
    typed! {
        /// A run.
        run(id: RunId) -> Run, RecordKey::Run(id), Run
    }
    typed! {
        /// A span of skipped occurrences.
        skip_span(id: RunId) -> SkipSpan, RecordKey::SkipSpan(id), SkipSpan
    }
    typed! {
        /// A lock and its holder; `None` if the lock is free.
        lock(name: &LockName) -> LockState, RecordKey::Lock(name.clone()), Lock
    }

    typed! {
        /// A node.
        node(id: NodeId) -> NodeRecord, RecordKey::Node(id), Node
    }

    typed! {
        /// The latest run of a job on a foreign node.
        foreign_run(job: &JobId) -> ForeignRun, RecordKey::Foreign(job.clone()), Foreign
    }

    typed! {
        /// What a transition of a run owes to the outside.
        action(id: ActionId) -> ActionRecord, RecordKey::Action(id), Action
    }

    /// A job as it is known, without making the commit compare it. For a decision that is right with an older definition,
    /// too. `None` if it does not exist, cannot be read or is not loaded yet.
    pub fn known_job(&self, id: &JobId) -> Option<&'a Arc<JobRecord>> {
        let key = RecordKey::Job(id.clone());
        match self.records.get(&key) {
            Some(Some(StoredRecord { record: Record::Job(job), .. })) => Some(job),
            Some(_) => None,
            None if self.records.is_unreadable(&key) => None,
            None => {
                self.missing.borrow_mut().insert(key);
                None
            }
        }
    }

    /// A run as it is loaded; `None` if it does not exist or is not loaded. It neither requests nor compares the run.
    pub fn loaded_run(&self, id: RunId) -> Option<&'a Run> {
        match self.records.get(&RecordKey::Run(id)) {
            Some(Some(StoredRecord { record: Record::Run(run), .. })) => Some(run),
            _ => None,
        }
    }

    /// Whether a span of skips is loaded and exists. It neither requests nor compares the span.
    pub fn has_loaded_span(&self, id: RunId) -> bool {
        matches!(self.records.get(&RecordKey::SkipSpan(id)), Some(Some(_)))
    }

    /// A job's runs as a set; that of a job that never ran if there is no record.
    pub fn job_state(&self, job: &JobId) -> Arc<JobState> {
        match self.stored(&RecordKey::JobState(job.clone())) {
            Some(StoredRecord { record: Record::JobState(state), .. }) => Arc::clone(state),
            _ => Arc::new(JobState::new(job.clone())),
        }
    }

    /// The latest outcomes of a job with certain args; empty if there is no record.
    pub fn identity(&self, job: &JobId, args: &Args) -> Arc<Identity> {
        match self.stored(&RecordKey::Identity(job.clone(), args.clone())) {
            Some(StoredRecord { record: Record::Identity(identity), .. }) => Arc::clone(identity),
            _ => Arc::new(Identity::new(job.clone(), args.clone())),
        }
    }

    /// The active runs of a pool; none if there is no record.
    pub fn pool(&self, name: &PoolName) -> Arc<Pool> {
        match self.stored(&RecordKey::Pool(name.clone())) {
            Some(StoredRecord { record: Record::Pool(pool), .. }) => Arc::clone(pool),
            _ => Arc::new(Pool::new(name.clone())),
        }
    }

    /// The pending triggers of a job; none if there is no record.
    pub fn triggers(&self, job: &JobId) -> Arc<TriggerSet> {
        match self.stored(&RecordKey::Triggers(job.clone())) {
            Some(StoredRecord { record: Record::Triggers(set), .. }) => Arc::clone(set),
            _ => Arc::new(TriggerSet::new(job.clone())),
        }
    }

    /// The pause of all jobs.
    pub fn pauses(&self) -> Arc<PauseState> {
        match self.stored(&RecordKey::Pause) {
            Some(StoredRecord { record: Record::Pause(pauses), .. }) => Arc::clone(pauses),
            _ => Arc::default(),
        }
    }
}

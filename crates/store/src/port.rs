//! The `Store` trait: everything that Cronhold requires of a place where it keeps its state. It is small on purpose,
//! and all of it works on batches, because a round trip per decision would limit throughput.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey, RecordKind, StoredRecord};
use cronhold_core::{JobId, RunId, State};
use cronhold_schedule::Instant;

use crate::tasks::TaskStore;
use crate::{
    DefinitionPage, Fault, Page, Query, SharedStore, StoreLimits, Unit, UnitReceipt, UnitRefusal, WalkPage, WalkPlace,
};

/// A boxed future.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The clock of a store that has none of its own.
pub type ClockFn = Arc<dyn Fn() -> Instant + Send + Sync>;

/// The number of a writer. It is unique for the lifetime of the store, and part of the version of everything the writer
/// writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriterId(pub u32);

/// Units that are committed together at a later time. The store does what it can before: nothing of them is visible or
/// durable before the commit is requested.
pub trait AheadCommit: Send {
    /// Adds units. They may build on those that were added before.
    fn push(&mut self, units: Vec<Unit>);

    /// Commits the units in their order, with a result for each. The commit starts when the future is first polled.
    fn commit(self: Box<Self>) -> CommitFuture;

    /// How many units are worth being prepared. Beyond that, they are better committed one batch after the other.
    fn units_max(&self) -> usize;
}

/// The results of units that are being committed.
pub type CommitFuture = Pending<'static, Vec<Result<UnitReceipt, UnitRefusal>>>;

/// Commits that are prepared and started one after the other.
struct PreparedPieces<S: ?Sized> {
    store: Arc<S>,
    pieces: Vec<CommitFuture>,
}

impl<S: Store + ?Sized + 'static> AheadCommit for PreparedPieces<S> {
    fn push(&mut self, units: Vec<Unit>) {
        self.pieces.push(Arc::clone(&self.store).prepare_commit(units));
    }

    fn commit(self: Box<Self>) -> CommitFuture {
        let mut pieces: Vec<(CommitFuture, Option<Vec<_>>)> =
            self.pieces.into_iter().map(|piece| (piece, None)).collect();
        Box::pin(poll_fn(move |context| {
            for (piece, results) in pieces.iter_mut().filter(|(_, results)| results.is_none()) {
                if let Poll::Ready(ready) = piece.as_mut().poll(context) {
                    *results = Some(ready);
                }
            }
            match pieces.iter().all(|(_, results)| results.is_some()) {
                true => Poll::Ready(pieces.iter_mut().flat_map(|(_, results)| results.take()).flatten().collect()),
                false => Poll::Pending,
            }
        }))
    }

    fn units_max(&self) -> usize {
        PIECES_UNITS_MAX
    }
}

/// Units of [`PreparedPieces`].
const PIECES_UNITS_MAX: usize = 2_048;

/// Keeps records, locks and outputs.
///
/// Futures may be dropped at any time. A commit whose future was dropped may or may not have taken effect.
pub trait Store: Send + Sync + fmt::Debug {
    /// Assigns a number to a new writer.
    fn enroll(&self) -> Pending<'_, Result<WriterId, Fault>>;

    /// Whether other writers may write at the same time.
    fn is_shared(&self) -> bool {
        true
    }

    /// How much the store keeps. It stays the same while the store is open.
    fn limits(&self) -> StoreLimits {
        StoreLimits::default()
    }

    /// The size of a record as the store encodes it, in bytes. A store without limits on records need not know it, and
    /// returns 0.
    fn record_size(&self, _record: &Record) -> u64 {
        0
    }

    /// The size of the changes of a unit as the store counts them for its limit, in bytes.
    fn unit_size(&self, changes: &[RecordChange]) -> u64 {
        let size = |change: &RecordChange| match change {
            RecordChange::Put(record) => self.record_size(record),
            RecordChange::Delete(_) => 0,
        };
        changes.iter().map(size).sum()
    }

    /// Records in the order of the keys, as one snapshot; `None` for those that do not exist, and for expired locks.
    fn load<'a>(&'a self, keys: &'a [RecordKey]) -> Pending<'a, Result<Vec<Option<StoredRecord>>, Fault>>;

    /// Commits units in their order, each atomically, and returns a result for each. A committed unit is durable.
    /// Deleting a run deletes its output.
    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>>;

    /// A commit that starts when its future is first polled. The store prepares what it can now without accessing
    /// stored data, because the previous commit may still be in flight.
    fn prepare_commit(self: Arc<Self>, units: Vec<Unit>) -> CommitFuture
    where
        Self: 'static,
    {
        Box::pin(async move { self.commit(units).await })
    }

    /// Begins a commit whose units are known some time before it is requested. Nothing of it takes effect if it is
    /// dropped.
    fn begin_ahead(self: Arc<Self>) -> Box<dyn AheadCommit>
    where
        Self: 'static,
    {
        Box::new(PreparedPieces { store: self, pieces: Vec::new() })
    }

    /// Obligations that are due at or before `until`; `after` is the last one of the page before. The store may round
    /// times for the order, and then sorts by key. It may leave out runs that a node owns: that node compares all of them
    /// with its plan.
    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize,
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>>;

    /// A page of at most `limit` records.
    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>>;

    /// Some records of a kind, in any order, from a place that the store returned, or from the beginning. About `limit`
    /// records; a page may be empty although the walk continues. A record that exists during the whole walk is returned; one
    /// that does not change is returned once, as long as few records are deleted meanwhile. Of locks, those that are held are
    /// returned; marks may be left out. Foreign runs are not returned.
    fn walk<'a>(
        &'a self,
        kind: RecordKind,
        from: Option<&'a WalkPlace>,
        limit: usize,
    ) -> Pending<'a, Result<WalkPage, Fault>>;

    /// The definitions of at most `limit` jobs by id; `after` is the last id of the page before. Jobs that cannot be read
    /// are left out. A store that has definitions as JSON returns them as they are, which is much faster than a page of
    /// jobs.
    fn definitions<'a>(&'a self, after: Option<&'a JobId>, limit: usize) -> Pending<'a, Result<DefinitionPage, Fault>> {
        Box::pin(async move {
            let page = self.page(&Query::Jobs { after: after.cloned() }, limit).await?;
            Ok(DefinitionPage::of(&page, limit))
        })
    }

    /// Appends to the output of a run at byte `from`. Bytes that are already stored stay unchanged, so that a retry is
    /// safe; a gap is an error. Returns the length of the output.
    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>>;

    /// Reads at most `most` bytes of the output of a run from byte `from`.
    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>>;

    /// Runs that have an output, ordered by id, also runs that no longer exist; `after` is the last one of the page
    /// before.
    fn outputs(&self, after: Option<RunId>, limit: usize) -> Pending<'_, Result<Vec<RunId>, Fault>>;

    /// The size of all outputs together, and of the outputs of these runs in their order; 0 for a run without an output.
    /// The store counts the total, so that it costs the same for any number of outputs.
    fn output_sizes<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<OutputSizes, Fault>>;

    /// Deletes outputs. The runs stay unchanged.
    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>>;

    /// Deletes the fences of locks that are free and were last taken before a time, and marks that have expired. A lock
    /// that is held stays.
    fn expire_locks(&self, before: Instant) -> Pending<'_, Result<(), Fault>>;

    /// Stores that a node is alive, and renews the locks of its runs for their time to live. Returns the locks that are
    /// lost, each with the run that does not hold it. Only units change the drain flag: a heartbeat of the same incarnation keeps the stored one.
    fn beat<'a>(
        &'a self,
        node: &'a NodeRecord,
        locks: &'a [(LockName, RunId)],
    ) -> Pending<'a, Result<Vec<(LockName, RunId)>, Fault>>;

    /// Seals the store, for example because its records are being copied: from now on it refuses commits, appends, deletions
    /// of outputs and of fences as read-only, with this reason. Reads and heartbeats continue, so that leases are renewed. The
    /// seal is durable. A seal that exists gets the new reason.
    fn seal<'a>(&'a self, reason: &'a str) -> Pending<'a, Result<(), Fault>>;

    /// The tasks that this store keeps beside jobs; `None` if it keeps no tasks.
    fn task_store(&self) -> Option<Arc<dyn TaskStore>> {
        None
    }

    /// Removes the seal, if there is one.
    fn unseal(&self) -> Pending<'_, Result<(), Fault>>;

    /// Waits until other handles have changed records, and returns which. Hints may be lost, late or duplicated.
    fn hints(&self) -> Pending<'_, Vec<Hint>>;

    /// The time by the clock of the store.
    fn time(&self) -> Pending<'_, Result<Instant, Fault>>;

    /// The state of the store, for display and metrics.
    fn health(&self) -> Pending<'_, StoreHealthReport>;

    /// The part that foreign programs use as well; `None` if the store has none.
    fn shared(&self) -> Option<&dyn SharedStore> {
        None
    }
}

/// A record that requires an action at some time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Obligation {
    /// When the action is due.
    pub at: Instant,
    /// The key of a cursor, a backlog, a run or an action.
    pub key: RecordKey,
}

/// A part of an output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chunk {
    /// The bytes from the requested position.
    pub bytes: Vec<u8>,
    /// The length of the whole output.
    pub length: u64,
}

/// Sizes of outputs in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutputSizes {
    /// All outputs together.
    pub total: u64,
    /// The outputs of the requested runs.
    pub of_runs: Vec<u64>,
}

/// A notification that another handle has changed a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The key of the record.
    pub key: RecordKey,
    /// Whether only nodes that already work with the record need it: a run that has started, has ended or was deleted, a
    /// span of skips, a job state without queued runs and pending triggers, or an action that is done. False if the store does not know.
    pub is_quiet: bool,
}

impl Hint {
    /// A hint that every node may need.
    pub fn new(key: RecordKey) -> Self {
        Self { key, is_quiet: false }
    }

    /// The hint for a change.
    pub fn of(change: &RecordChange) -> Self {
        let is_quiet = match change {
            RecordChange::Put(Record::Run(run)) => !matches!(run.state, State::Scheduled | State::Waiting),
            RecordChange::Put(Record::SkipSpan(_)) => true,
            // Each run of a job with a history is followed by the deletion of an earlier one.
            RecordChange::Delete(RecordKey::Run(_) | RecordKey::SkipSpan(_)) => true,
            RecordChange::Put(Record::Action(action)) => !action.is_pending(),
            RecordChange::Put(Record::JobState(state)) => state.queue.is_empty() && !state.has_triggers,
            RecordChange::Put(Record::Triggers(set)) => set.pending.is_empty(),
            _ => false,
        };
        Self { key: change.key(), is_quiet }
    }
}

/// The state of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreHealthReport {
    /// Why the store does not work now; `None` if it works.
    pub trouble: Option<String>,
    /// The kind and the location of the store, for display.
    pub description: String,
    /// Durable commits since the store was opened.
    pub commits: u64,
    /// Committed units since the store was opened.
    pub units: u64,
    /// Why the store is sealed; `None` if it is not. See [`Store::seal`].
    pub sealed: Option<String>,
    /// Guarantees that the store cannot give with its configuration, for its operator.
    pub warnings: Vec<String>,
}

//! The reference store: everything in memory under one lock, without I/O and without a clock of its own. It defines the
//! semantics of the `Store` trait by example; the simulation runs on it, and all stores pass the same conformance
//! suite.

mod locks;
mod outputs;
mod rollback;
mod state;

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::lock::lock_mutex;
use cronhold_core::RunId;
use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey, RecordKind, StoredRecord};
use cronhold_schedule::Instant;

pub use self::rollback::MemorySnapshot;
use self::state::MemoryState;
use crate::{
    Chunk, ClockFn, Fault, HandleId, Hint, HintBoard, Obligation, OutputSizes, Page, Pending, Query, Store,
    StoreHealthReport, StoreLimits, Unit, UnitReceipt, UnitRefusal, WalkPage, WalkPlace, WriterId,
};

/// A handle on a store in memory. A clone is another handle on the same store, as another process would have, with its
/// own queue of hints.
///
/// Every request except [`Store::hints`] completes when its future is first polled.
pub struct MemoryStore {
    id: HandleId,
    shared: Arc<MemoryShared>,
}

/// What all handles share.
struct MemoryShared {
    clock: ClockFn,
    limits: StoreLimits,
    hints: HintBoard,
    state: Mutex<MemoryState>,
}

impl MemoryStore {
    /// An empty store that takes its time from `clock`.
    pub fn new(clock: ClockFn) -> Self {
        Self::with_limits(clock, StoreLimits::default())
    }

    /// An empty store that refuses what exceeds limits. The debug text of a record stands for its encoded form.
    pub fn with_limits(clock: ClockFn, limits: StoreLimits) -> Self {
        let hints = HintBoard::default();
        let id = hints.join();
        Self { id, shared: Arc::new(MemoryShared { clock, limits, hints, state: Mutex::default() }) }
    }

    fn now(&self) -> Instant {
        (self.shared.clock)()
    }

    /// Callers read the clock before they take this lock, because the clock is foreign code.
    fn state(&self) -> MutexGuard<'_, MemoryState> {
        lock_mutex(&self.shared.state)
    }

    /// The state, to be changed; fails if the store is sealed.
    fn unsealed_state(&self) -> Result<MutexGuard<'_, MemoryState>, Fault> {
        let state = self.state();
        match &state.sealed {
            Some(reason) => Err(Fault::sealed(reason)),
            None => Ok(state),
        }
    }

    /// Publishes the hints of a change after the lock is released, because that calls wakers of other handles.
    fn publish(&self, mut state: MutexGuard<'_, MemoryState>) {
        let hints = state.take_hints();
        drop(state);
        self.shared.hints.publish(self.id, &hints);
    }
}

impl Store for MemoryStore {
    fn enroll(&self) -> Pending<'_, Result<WriterId, Fault>> {
        Box::pin(async move { self.state().enroll() })
    }

    fn limits(&self) -> StoreLimits {
        self.shared.limits
    }

    fn record_size(&self, record: &Record) -> u64 {
        format!("{record:?}").len() as u64
    }

    fn load<'a>(&'a self, keys: &'a [RecordKey]) -> Pending<'a, Result<Vec<Option<StoredRecord>>, Fault>> {
        Box::pin(async move {
            let now = self.now();
            let state = self.state();
            Ok(keys.iter().map(|key| state.load(key, now)).collect())
        })
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        Box::pin(async move {
            let now = self.now();
            let mut state = self.state();
            let check = |unit: &Unit| self.shared.limits.check_unit(unit, |record| self.record_size(record));
            let results = state.commit(&units, check, now);
            self.publish(state);
            results
        })
    }

    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize,
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>> {
        Box::pin(async move { Ok(self.state().records.due(after, until, limit)) })
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        Box::pin(async move { Ok(self.state().records.page(query, limit)) })
    }

    fn walk<'a>(
        &'a self,
        kind: RecordKind,
        from: Option<&'a WalkPlace>,
        limit: usize,
    ) -> Pending<'a, Result<WalkPage, Fault>> {
        Box::pin(async move {
            let now = self.now();
            Ok(self.state().walk(kind, from, limit, now))
        })
    }

    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>> {
        Box::pin(async move {
            let most = self.shared.limits.output.unwrap_or(u64::MAX);
            self.unsealed_state()?.outputs.append(run, from, bytes, most)
        })
    }

    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>> {
        Box::pin(async move { Ok(self.state().outputs.read(run, from, most)) })
    }

    fn outputs(&self, after: Option<RunId>, limit: usize) -> Pending<'_, Result<Vec<RunId>, Fault>> {
        Box::pin(async move { Ok(self.state().outputs.list(after, limit)) })
    }

    fn output_sizes<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<OutputSizes, Fault>> {
        Box::pin(async move { Ok(self.state().outputs.sizes(runs)) })
    }

    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>> {
        Box::pin(async move {
            let mut state = self.unsealed_state()?;
            runs.iter().for_each(|run| state.outputs.remove(*run));
            Ok(())
        })
    }

    fn expire_locks(&self, before: Instant) -> Pending<'_, Result<(), Fault>> {
        Box::pin(async move {
            let now = self.now();
            self.unsealed_state()?.locks.expire(before, now);
            Ok(())
        })
    }

    fn beat<'a>(
        &'a self,
        node: &'a NodeRecord,
        locks: &'a [(LockName, RunId)],
    ) -> Pending<'a, Result<Vec<(LockName, RunId)>, Fault>> {
        Box::pin(async move {
            let now = self.now();
            let mut state = self.state();
            let lost = state.beat(node, locks, now);
            self.publish(state);
            Ok(lost)
        })
    }

    fn seal<'a>(&'a self, reason: &'a str) -> Pending<'a, Result<(), Fault>> {
        Box::pin(async move {
            self.state().sealed = Some(reason.to_owned());
            Ok(())
        })
    }

    fn unseal(&self) -> Pending<'_, Result<(), Fault>> {
        Box::pin(async move {
            self.state().sealed = None;
            Ok(())
        })
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        Box::pin(poll_fn(|context| self.shared.hints.poll(self.id, context.waker())))
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        Box::pin(async move { Ok(self.now()) })
    }

    fn health(&self) -> Pending<'_, StoreHealthReport> {
        Box::pin(async move { self.state().health() })
    }
}

impl Clone for MemoryStore {
    fn clone(&self) -> Self {
        let id = self.shared.hints.join();
        Self { id, shared: Arc::clone(&self.shared) }
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        self.shared.hints.leave(self.id);
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryStore({:?})", self.id)
    }
}

//! A store that is away for some requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cronhold_core::task::{PortAddress, TaskUnit};
use cronhold_store::tasks::{
    HeartbeatReply, PortWindow, ProcessHeartbeat, TaskReceipt, TaskStore, TaskStoreWrapper, TaskUnitError, WindowLimits,
};
use cronhold_store::{Fault, Pending};

/// Passes requests on to a store, except as many as the counters say.
#[derive(Debug)]
pub(crate) struct UnreliableTasks {
    store: Arc<dyn TaskStore>,
    /// Commits for which it is away.
    pub(crate) commits: AtomicU32,
    /// Reads of items for which it is away.
    pub(crate) reads: AtomicU32,
    /// Heartbeats of processes that it has forgotten.
    pub(crate) beats: AtomicU32,
}

impl UnreliableTasks {
    pub(crate) fn new(store: Arc<dyn TaskStore>) -> Self {
        Self { store, commits: AtomicU32::new(0), reads: AtomicU32::new(0), beats: AtomicU32::new(0) }
    }

    fn is_away(&self, counter: &AtomicU32) -> bool {
        let less = |count: u32| count.checked_sub(1);
        counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }
}

fn away() -> Fault {
    Fault::Unavailable("the store restarts".to_owned())
}

impl TaskStoreWrapper for UnreliableTasks {
    fn inside(&self) -> &dyn TaskStore {
        &*self.store
    }

    fn commit(&self, units: Vec<TaskUnit>) -> Pending<'_, Vec<Result<TaskReceipt, TaskUnitError>>> {
        match self.is_away(&self.commits) {
            true => Box::pin(async move { units.iter().map(|_| Err(away().into())).collect() }),
            false => self.store.commit(units),
        }
    }

    fn heartbeat(&self, beat: ProcessHeartbeat) -> Pending<'_, Result<HeartbeatReply, Fault>> {
        match self.is_away(&self.beats) {
            true => Box::pin(async { Ok(HeartbeatReply { is_unknown: true, ..HeartbeatReply::default() }) }),
            false => self.store.heartbeat(beat),
        }
    }

    fn items<'a>(
        &'a self,
        port: &'a PortAddress,
        from: u64,
        limits: &'a WindowLimits,
    ) -> Pending<'a, Result<Option<PortWindow>, Fault>> {
        match self.is_away(&self.reads) {
            true => Box::pin(async { Err(away()) }),
            false => self.store.items(port, from, limits),
        }
    }
}

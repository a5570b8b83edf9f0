//! The `Store` trait for Redis. All work runs on a runtime of the store, so that handles can be used on any executor,
//! and requests continue when their future is dropped.

use std::fmt;
use std::future::poll_fn;
use std::path::PathBuf;
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::record::{LockName, NodeRecord, RecordKey, StoredRecord};
use cronhold_schedule::{Instant, ZoneRegistry};
use cronhold_store::{
    Chunk, Fault, HandleId, Hint, Obligation, OutputSizes, Page, Pending, Query, SharedStore, Store, StoreHealthReport,
    Unit, UnitReceipt, UnitRefusal, WriterId,
};
use tokio::runtime::{Builder, Runtime};

use crate::commit::CommittingHandle;
use crate::connections::RedisConnections;
use crate::core::StoreCore;
use crate::cronken::SharedKeys;
use crate::packed_unit::PackedUnit;
use crate::rollback_recovery::SeqFile;
use crate::url::RedisUrl;
use crate::{expiry, faults, keys, notifications};

/// A handle on a store in Redis. A clone is another handle on the same store with its own queue of hints.
pub struct RedisStore {
    id: HandleId,
    core: Arc<StoreCore>,
    worker: Arc<StoreWorker>,
}

/// Options for opening a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// The time zones that jobs can use.
    pub zones: Arc<ZoneRegistry>,
    /// A file that keeps the position of the store, so that a rollback is detected also after a restart.
    pub memory: Option<PathBuf>,
    /// Whether a server that evicts keys when its memory is full may be used.
    pub accept_loss: bool,
}

/// Why a store cannot be opened. An unreachable server is not an error here: the first request reports it.
#[derive(Debug, thiserror::Error)]
pub enum RedisOpenError {
    /// The runtime cannot be started.
    #[error("cannot start a thread for the connection to Redis: {0}")]
    Thread(std::io::Error),
    /// The system has no random numbers, which locks need.
    #[error("cannot get random numbers from the system: {0}")]
    Random(getrandom::Error),
}

/// The runtime of a store, and the part of the store that runs on it.
struct StoreWorker {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    shared: SharedKeys,
}

impl RedisStore {
    /// Opens a store. Does not connect before the first request.
    pub fn open(url: &RedisUrl, options: Options) -> Result<Self, RedisOpenError> {
        let mut builder = Builder::new_multi_thread();
        let runtime =
            builder.worker_threads(1).thread_name("redis").enable_all().build().map_err(RedisOpenError::Thread)?;
        let connections = RedisConnections::new(url, runtime.handle().clone());
        let Options { zones, memory, accept_loss } = options;
        let seq_file = memory.map(SeqFile::new);
        let core = StoreCore::new(url.clone(), zones, accept_loss, connections.clone(), seq_file);
        let core = core.map_err(RedisOpenError::Random)?;
        let peers = Arc::clone(&core.peers);
        let shared = SharedKeys::new(connections, runtime.handle().clone(), &url.settings.namespace, peers);
        let worker = Arc::new(StoreWorker { runtime: Some(runtime), shared });
        Ok(Self { id: core.notifications.board().join(), core: Arc::new(core), worker })
    }

    /// Sets the minimum time for which commits are rejected after a rollback, so that tests do not wait as long as
    /// nodes.
    #[cfg(feature = "testing")]
    pub fn set_min_recovery_time(&self, min: std::time::Duration) {
        self.core.recovery.set_min_hold(u64::try_from(min.as_millis()).unwrap_or(u64::MAX));
    }

    /// Runs a request on the runtime of the store.
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        self.worker.spawn(work).await.unwrap_or_else(|| Err(closed()))
    }

    /// Like [`Self::run`], for a request that only reads: without a reply it had no effect.
    async fn run_read<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        self.run(work).await.map_err(faults::as_unsent)
    }

    async fn commit_packed(&self, units: Vec<PackedUnit>) -> Vec<Result<UnitReceipt, UnitRefusal>> {
        let (core, by, count) = (Arc::clone(&self.core), self.id, units.len());
        let done = self.worker.spawn(async move {
            let is_only_handle = !core.notifications.board().has_others(by);
            let results = core.commits.commit(CommittingHandle { by, is_only_handle }, units).await;
            let fault = results.iter().find_map(|result| match result {
                Err(UnitRefusal::Fault(fault)) => Some(fault),
                _ => None,
            });
            core.counters.record_outcome(fault);
            results
        });
        done.await.unwrap_or_else(|| vec![Err(closed().into()); count])
    }
}

impl StoreWorker {
    /// Runs a task, which continues when the caller is gone. `None` if the runtime was shut down.
    async fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        self.runtime.as_ref()?.spawn(work).await.ok()
    }
}

fn closed() -> Fault {
    Fault::OutcomeUnknown("the store was closed".to_owned())
}

impl Store for RedisStore {
    fn enroll(&self) -> Pending<'_, Result<WriterId, Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.run(async move { core.enrollment.enroll().await }))
    }

    fn load<'a>(&'a self, keys: &'a [RecordKey]) -> Pending<'a, Result<Vec<Option<StoredRecord>>, Fault>> {
        let (core, keys) = (Arc::clone(&self.core), keys.to_vec());
        Box::pin(self.run_read(async move { core.records.load(keys).await }))
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        Box::pin(async move { self.commit_packed(self.core.commits.pack(units)).await })
    }

    /// Packs the units immediately: that is most of the work outside the server.
    fn prepare_commit(self: Arc<Self>, units: Vec<Unit>) -> Pending<'static, Vec<Result<UnitReceipt, UnitRefusal>>> {
        let units = self.core.commits.pack(units);
        Box::pin(async move { self.commit_packed(units).await })
    }

    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize,
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>> {
        let (core, after) = (Arc::clone(&self.core), after.cloned());
        Box::pin(self.run_read(async move { core.pages.due(after, until, limit).await }))
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        let (core, query) = (Arc::clone(&self.core), query.clone());
        Box::pin(self.run_read(async move { core.pages.page(query, limit).await }))
    }

    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>> {
        let (core, bytes) = (Arc::clone(&self.core), bytes.to_vec());
        Box::pin(self.run(async move {
            let appended = core.outputs.append(run, from, bytes).await?;
            core.counters.count_skipped(appended.skipped_writes);
            Ok(appended.length)
        }))
    }

    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.run_read(async move { core.outputs.read(run, from, most).await }))
    }

    fn outputs(&self, after: Option<RunId>, limit: usize) -> Pending<'_, Result<Vec<RunId>, Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.run_read(async move { core.outputs.list(after, limit).await }))
    }

    fn output_sizes<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<OutputSizes, Fault>> {
        let (core, runs) = (Arc::clone(&self.core), runs.to_vec());
        Box::pin(self.run(async move { core.outputs.sizes(&runs).await }))
    }

    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>> {
        let (core, runs) = (Arc::clone(&self.core), runs.to_vec());
        Box::pin(self.run(async move { core.outputs.drop_all(&runs).await }))
    }

    fn expire_locks(&self, before: Instant) -> Pending<'_, Result<(), Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.run(async move { expiry::expire_locks(&core.client, before).await }))
    }

    fn beat<'a>(
        &'a self,
        node: &'a NodeRecord,
        locks: &'a [(LockName, RunId)],
    ) -> Pending<'a, Result<Vec<(LockName, RunId)>, Fault>> {
        let (core, by, node, locks) = (Arc::clone(&self.core), self.id, node.clone(), locks.to_vec());
        Box::pin(self.run(async move {
            let lost = core.heartbeats.write(by, node, locks).await;
            core.counters.record_outcome(lost.as_ref().err());
            lost
        }))
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        if self.core.notifications.claim_subscription()
            && let Some(runtime) = &self.worker.runtime
        {
            let channels = vec![keys::hints(self.core.client.namespace()), self.core.own_channel.clone()];
            let connections = self.core.client.connections().clone();
            runtime.spawn(notifications::run_subscription(connections, channels, Arc::downgrade(&self.core)));
        }
        Box::pin(poll_fn(|context| self.core.notifications.board().poll(self.id, context.waker())))
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.run_read(async move { core.time().await }))
    }

    fn health(&self) -> Pending<'_, StoreHealthReport> {
        Box::pin(async move {
            let mut health = self.core.health();
            health.warnings.extend(self.worker.shared.warning());
            health
        })
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(&self.worker.shared)
    }
}

impl Clone for RedisStore {
    fn clone(&self) -> Self {
        let id = self.core.notifications.board().join();
        Self { id, core: Arc::clone(&self.core), worker: Arc::clone(&self.worker) }
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.core.notifications.board().leave(self.id);
    }
}

impl Drop for StoreWorker {
    fn drop(&mut self) {
        // The last handle may be dropped on any thread, also on one that must not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({}, {:?})", self.core.url, self.id)
    }
}

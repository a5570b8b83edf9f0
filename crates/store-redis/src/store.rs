//! The `Store` trait for Redis. All work runs on the runtime of the store.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::record::{LockName, NodeRecord, RecordKey, RecordKind, StoredRecord};
use cronhold_schedule::{Instant, ZoneRegistry};
use cronhold_store::tasks::TaskStore;
use cronhold_store::{
    Chunk, Fault, Hint, Obligation, OutputSizes, Page, Pending, Query, SharedStore, Store, StoreHealthReport, Unit,
    UnitReceipt, UnitRefusal, WalkPage, WalkPlace, WriterId,
};
#[cfg(feature = "testing")]
use cronhold_store_remote::url::as_span;
use cronhold_store_remote::{BoardHandle, SeqFile, StoreRuntime, closed};

use crate::commit::CommittingHandle;
use crate::connections::RedisConnections;
use crate::core::StoreCore;
use crate::cronken::SharedKeys;
use crate::packed_unit::PackedUnit;
use crate::tasks::{RedisTaskParts, RedisTaskStore, RuntimeOwner, TaskOptions};
use crate::url::{RedisUrl, Topology};
use crate::{expiry, keys, notifications, seal};

/// A handle on a store in Redis. A clone is another handle on the same store with its own queue of hints.
#[derive(Clone)]
pub struct RedisStore {
    handle: BoardHandle,
    core: Arc<StoreCore>,
    worker: Arc<StoreWorker>,
    tasks: Arc<RedisTaskParts>,
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
#[derive(Debug)]
struct StoreWorker {
    runtime: StoreRuntime,
    shared: SharedKeys,
}

impl RedisStore {
    /// Opens a store. Does not connect before the first request.
    pub fn open(url: &RedisUrl, options: Options) -> Result<Self, RedisOpenError> {
        let runtime = StoreRuntime::start("redis").map_err(RedisOpenError::Thread)?;
        let connections = RedisConnections::new(url, runtime.handle().clone());
        let Options { zones, memory, accept_loss } = options;
        let seq_file = memory.map(SeqFile::new);
        let core = StoreCore::new(url.clone(), zones, accept_loss, connections.clone(), seq_file);
        let core = core.map_err(RedisOpenError::Random)?;
        let tasks = Arc::new(start_tasks(url, &runtime, &connections, &core, None));
        let peers = Arc::clone(&core.peers);
        let shared = SharedKeys::new(connections, runtime.handle().clone(), &url.settings.namespace, peers);
        let handle = BoardHandle::join(Arc::clone(core.notifications.board()));
        Ok(Self { handle, core: Arc::new(core), worker: Arc::new(StoreWorker { runtime, shared }), tasks })
    }

    /// The tasks of this store.
    pub fn tasks(&self) -> RedisTaskStore {
        RedisTaskStore::new(Arc::clone(&self.worker) as Arc<dyn RuntimeOwner>, Arc::clone(&self.tasks))
    }

    /// The tasks of this store by a clock that tests advance.
    #[cfg(feature = "testing")]
    pub fn tasks_with_clock(&self, clock: cronhold_store::ClockFn) -> RedisTaskStore {
        let (runtime, connections) = (&self.worker.runtime, self.core.client.connections());
        let parts = start_tasks(&self.core.url, runtime, connections, &self.core, Some(clock));
        RedisTaskStore::new(Arc::clone(&self.worker) as Arc<dyn RuntimeOwner>, Arc::new(parts))
    }

    /// Sets the minimum time for which commits are rejected after a rollback, so that tests do not wait as long as
    /// nodes.
    #[cfg(feature = "testing")]
    pub fn set_min_recovery_time(&self, min: std::time::Duration) {
        self.core.recovery.set_min_hold(as_span(min));
    }

    async fn commit_packed(&self, units: Vec<PackedUnit>) -> Vec<Result<UnitReceipt, UnitRefusal>> {
        let (core, by, count) = (Arc::clone(&self.core), self.handle.id(), units.len());
        let done = self.worker.runtime.spawn(async move {
            let is_only_handle = !core.notifications.board().has_others(by);
            let results = core.commits.commit(CommittingHandle { by, is_only_handle }, units).await;
            core.counters.record_results(&results);
            results
        });
        done.await.unwrap_or_else(|| vec![Err(closed().into()); count])
    }

    fn runtime(&self) -> &StoreRuntime {
        &self.worker.runtime
    }
}

impl Store for RedisStore {
    fn enroll(&self) -> Pending<'_, Result<WriterId, Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.runtime().run(async move { core.enrollment.enroll().await }))
    }

    fn load<'a>(&'a self, keys: &'a [RecordKey]) -> Pending<'a, Result<Vec<Option<StoredRecord>>, Fault>> {
        let (core, keys) = (Arc::clone(&self.core), keys.to_vec());
        Box::pin(self.runtime().run_read(async move { core.records.load(keys).await }))
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
        Box::pin(self.runtime().run_read(async move { core.pages.due(after, until, limit).await }))
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        let (core, query) = (Arc::clone(&self.core), query.clone());
        Box::pin(self.runtime().run_read(async move { core.pages.page(query, limit).await }))
    }

    fn walk<'a>(
        &'a self,
        kind: RecordKind,
        from: Option<&'a WalkPlace>,
        limit: usize,
    ) -> Pending<'a, Result<WalkPage, Fault>> {
        let (core, from) = (Arc::clone(&self.core), from.cloned());
        Box::pin(self.runtime().run_read(async move { core.pages.walk(kind, from, limit).await }))
    }

    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>> {
        let (core, bytes) = (Arc::clone(&self.core), bytes.to_vec());
        Box::pin(self.runtime().run(async move {
            let appended = core.outputs.append(run, from, bytes).await?;
            core.projector.count_skipped(appended.skipped_writes);
            Ok(appended.length)
        }))
    }

    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.runtime().run_read(async move { core.outputs.read(run, from, most).await }))
    }

    fn outputs(&self, after: Option<RunId>, limit: usize) -> Pending<'_, Result<Vec<RunId>, Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.runtime().run_read(async move { core.outputs.list(after, limit).await }))
    }

    fn output_sizes<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<OutputSizes, Fault>> {
        let (core, runs) = (Arc::clone(&self.core), runs.to_vec());
        Box::pin(self.runtime().run(async move { core.outputs.sizes(&runs).await }))
    }

    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>> {
        let (core, runs) = (Arc::clone(&self.core), runs.to_vec());
        Box::pin(self.runtime().run(async move { core.outputs.drop_all(&runs).await }))
    }

    fn expire_locks(&self, before: Instant) -> Pending<'_, Result<(), Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.runtime().run(async move { expiry::expire_locks(&core.client, before).await }))
    }

    fn beat<'a>(
        &'a self,
        node: &'a NodeRecord,
        locks: &'a [(LockName, RunId)],
    ) -> Pending<'a, Result<Vec<(LockName, RunId)>, Fault>> {
        let (core, by, node, locks) = (Arc::clone(&self.core), self.handle.id(), node.clone(), locks.to_vec());
        Box::pin(self.runtime().run(async move {
            let lost = core.heartbeats.write(by, node, locks).await;
            core.counters.record_outcome(lost.as_ref().err());
            lost
        }))
    }

    fn seal<'a>(&'a self, reason: &'a str) -> Pending<'a, Result<(), Fault>> {
        let (core, reason) = (Arc::clone(&self.core), reason.to_owned());
        Box::pin(self.runtime().run(async move { seal::set(&core.client, Some(&reason)).await }))
    }

    fn unseal(&self) -> Pending<'_, Result<(), Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.runtime().run(async move { seal::set(&core.client, None).await }))
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        if self.core.notifications.claim_subscription() {
            let channels = vec![keys::hints(self.core.client.namespace()), self.core.own_channel.clone()];
            let connections = self.core.client.connections().clone();
            let subscription = notifications::run_subscription(connections, channels, Arc::downgrade(&self.core));
            self.runtime().handle().spawn(subscription);
        }
        self.handle.hints()
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.runtime().run_read(async move { core.time().await }))
    }

    fn task_store(&self) -> Option<Arc<dyn TaskStore>> {
        Some(Arc::new(self.tasks()))
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

impl RuntimeOwner for StoreWorker {
    fn store_runtime(&self) -> &StoreRuntime {
        &self.runtime
    }
}

/// Starts what handles on tasks share. Tasks have a connection of their own, so that they do not delay jobs.
fn start_tasks(
    url: &RedisUrl,
    runtime: &StoreRuntime,
    connections: &RedisConnections,
    core: &StoreCore,
    clock: Option<cronhold_store::ClockFn>,
) -> RedisTaskParts {
    let prefix = url.tasks_prefix();
    // In a Cluster, the hash slot of tasks may be on another server than that of jobs.
    let connections = match (&url.topology, url.with_namespace(prefix)) {
        (Topology::Cluster, Ok(url)) => RedisConnections::new(&url, runtime.handle().clone()),
        _ => connections.separate(),
    };
    // Elsewhere a server does not know the subscribers of the others.
    let counts_listeners = url.topology == Topology::Single;
    let options = TaskOptions { token: core.client.unique_token(), clock, counts_listeners };
    RedisTaskParts::start(connections, runtime.handle(), prefix, options)
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({}, {:?})", self.core.url, self.handle.id())
    }
}

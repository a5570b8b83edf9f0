//! The `Store` trait for ZooKeeper. All work runs on a runtime of the store, so that handles can be used on any executor,
//! and requests continue when their future is dropped.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey, RecordKind, RecordVersion, StoredRecord};
use cronhold_schedule::{Instant, ZoneRegistry};
use cronhold_store::{
    Chunk, Fault, Hint, Obligation, OutputSizes, Page, Pending, Query, SharedStore, Store, StoreHealthReport,
    StoreLimits, Unit, UnitReceipt, UnitRefusal, WalkPage, WalkPlace, WriterId,
};
use cronhold_store_remote::{BoardHandle, StoreRuntime, closed};

use crate::castle::CastleZnodes;
use crate::commit::TransactionUnit;
use crate::core::EnsembleStore;
use crate::url::ZooKeeperUrl;
use crate::{expiry, record_text};

/// A handle on a store in ZooKeeper. A clone is another handle on the same store with its own queue of hints.
#[derive(Clone)]
pub struct ZooKeeperStore {
    handle: BoardHandle,
    core: Arc<EnsembleStore>,
    runtime: Arc<StoreRuntime>,
}

/// Options for opening a store.
#[derive(Debug, Clone)]
pub struct ZooKeeperOptions {
    /// The time zones that jobs can use.
    pub zones: Arc<ZoneRegistry>,
    /// A file that keeps the position of the store, so that a rollback is detected also after a restart.
    pub memory: Option<PathBuf>,
}

/// Why a store cannot be opened. An unreachable ensemble is not an error here: the first request reports it.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a thread for the connection to ZooKeeper: {0}")]
pub struct ZooKeeperOpenError(pub(crate) std::io::Error);

impl ZooKeeperStore {
    /// Opens a store. Does not connect before the first request.
    pub fn open(url: &ZooKeeperUrl, options: ZooKeeperOptions) -> Result<Self, ZooKeeperOpenError> {
        let runtime = StoreRuntime::start("zookeeper").map_err(ZooKeeperOpenError)?;
        let ZooKeeperOptions { zones, memory } = options;
        let core = Arc::new(EnsembleStore::new(url, &zones, memory));
        Ok(Self { handle: BoardHandle::join(Arc::clone(&core.board)), core, runtime: Arc::new(runtime) })
    }

    /// castle-cron's znodes.
    pub(crate) fn castle(&self) -> Arc<CastleZnodes> {
        Arc::clone(&self.core.castle)
    }

    /// Runs a request that only reads, or whose repetition does no harm.
    pub(crate) fn run_read<'s, T: Send + 'static>(
        &'s self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Pending<'s, Result<T, Fault>> {
        Box::pin(self.runtime.run_read(work))
    }

    async fn commit_packed(&self, units: Vec<TransactionUnit>) -> Vec<Result<UnitReceipt, UnitRefusal>> {
        let (core, by, count) = (Arc::clone(&self.core), self.handle.id(), units.len());
        let turn = core.committer.take_turn();
        let done = self.runtime.spawn(async move { core.committer.commit(turn, by, units).await });
        done.await.unwrap_or_else(|| vec![Err(closed().into()); count])
    }
}

impl Store for ZooKeeperStore {
    fn enroll(&self) -> Pending<'_, Result<WriterId, Fault>> {
        let (core, id) = (Arc::clone(&self.core), self.handle.id());
        Box::pin(self.runtime.run_read(async move { core.enroll(id).await }))
    }

    fn limits(&self) -> StoreLimits {
        self.core.ensemble.limits()
    }

    fn record_size(&self, record: &Record) -> u64 {
        record_text::encode(RecordVersion::from_bits(0), record).len() as u64
    }

    fn unit_size(&self, changes: &[RecordChange]) -> u64 {
        let size = |change: &RecordChange| {
            let (key, data) = match change {
                RecordChange::Put(record) => (record.key(), self.record_size(record)),
                RecordChange::Delete(key) => (key.clone(), 0),
            };
            data + TransactionUnit::compared_bytes(self.core.ensemble.paths(), &key) as u64
        };
        changes.iter().map(size).sum()
    }

    fn load<'a>(&'a self, keys: &'a [RecordKey]) -> Pending<'a, Result<Vec<Option<StoredRecord>>, Fault>> {
        let (core, keys) = (Arc::clone(&self.core), keys.to_vec());
        Box::pin(self.runtime.run_read(async move { core.records.load(&keys).await }))
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        let units = self.core.encode_units(units);
        Box::pin(self.commit_packed(units))
    }

    /// Encodes the records immediately.
    fn prepare_commit(self: Arc<Self>, units: Vec<Unit>) -> Pending<'static, Vec<Result<UnitReceipt, UnitRefusal>>> {
        let units = self.core.encode_units(units);
        Box::pin(async move { self.commit_packed(units).await })
    }

    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize,
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>> {
        let (mirror, after) = (Arc::clone(&self.core.mirror), after.cloned());
        Box::pin(
            self.runtime
                .run_read(async move { mirror.read(|records| records.due(after.as_ref(), until, limit)).await }),
        )
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        let (mirror, query) = (Arc::clone(&self.core.mirror), query.clone());
        Box::pin(self.runtime.run_read(async move { mirror.read(|records| records.page(&query, limit)).await }))
    }

    fn walk<'a>(
        &'a self,
        kind: RecordKind,
        from: Option<&'a WalkPlace>,
        limit: usize,
    ) -> Pending<'a, Result<WalkPage, Fault>> {
        let (core, from) = (Arc::clone(&self.core), from.cloned());
        Box::pin(self.runtime.run_read(async move {
            match kind {
                RecordKind::Lock => core.records.walk_locks(from.as_ref(), limit).await,
                _ => core.mirror.read(|records| records.walk(kind, from.as_ref(), limit)).await,
            }
        }))
    }

    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>> {
        let (core, bytes) = (Arc::clone(&self.core), bytes.to_vec());
        Box::pin(self.runtime.run(async move { core.outputs.append(run, from, &bytes).await }))
    }

    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.runtime.run_read(async move { core.outputs.read(run, from, most).await }))
    }

    fn outputs(&self, after: Option<RunId>, limit: usize) -> Pending<'_, Result<Vec<RunId>, Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.runtime.run_read(async move { core.outputs.list(after, limit).await }))
    }

    fn output_sizes<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<OutputSizes, Fault>> {
        let (core, runs) = (Arc::clone(&self.core), runs.to_vec());
        Box::pin(self.runtime.run_read(async move { core.outputs.sizes(&runs).await }))
    }

    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>> {
        let (core, runs) = (Arc::clone(&self.core), runs.to_vec());
        Box::pin(self.runtime.run_read(async move { core.outputs.drop_all(&runs).await }))
    }

    fn expire_locks(&self, before: Instant) -> Pending<'_, Result<(), Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.runtime.run_read(async move {
            expiry::expire_locks(&core.ensemble, before).await?;
            core.mirror.delete_emptied().await
        }))
    }

    fn beat<'a>(
        &'a self,
        node: &'a NodeRecord,
        locks: &'a [(LockName, RunId)],
    ) -> Pending<'a, Result<Vec<(LockName, RunId)>, Fault>> {
        let (core, node, locks) = (Arc::clone(&self.core), node.clone(), locks.to_vec());
        Box::pin(self.runtime.run_read(async move {
            let lost = core.heartbeats.write(&node, &locks).await;
            core.counters.record_outcome(lost.as_ref().err());
            lost
        }))
    }

    fn seal<'a>(&'a self, reason: &'a str) -> Pending<'a, Result<(), Fault>> {
        let (core, reason) = (Arc::clone(&self.core), reason.to_owned());
        Box::pin(
            self.runtime.run_read(async move {
                core.ensemble.seal().set(&*core.ensemble.session().await?, Some(&reason)).await
            }),
        )
    }

    fn unseal(&self) -> Pending<'_, Result<(), Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(
            self.runtime
                .run_read(async move { core.ensemble.seal().set(&*core.ensemble.session().await?, None).await }),
        )
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        self.core.mirror.start(self.runtime.handle());
        self.handle.hints()
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        let core = Arc::clone(&self.core);
        Box::pin(self.runtime.run_read(async move { core.ensemble.time().await }))
    }

    fn health(&self) -> Pending<'_, StoreHealthReport> {
        Box::pin(async move { self.core.health() })
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }
}

impl fmt::Debug for ZooKeeperStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ZooKeeperStore({}, {:?})", self.core.ensemble.url(), self.handle.id())
    }
}

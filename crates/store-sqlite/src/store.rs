//! The `Store` trait for a SQLite file. Reads run on the caller's thread when their future is first polled; writes go
//! to the writer thread.

use std::fmt;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cronhold_core::record::{LockName, NodeRecord, RecordKey, RecordKind, StoredRecord};
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Instant;
use cronhold_store::tasks::{TaskBoard, TaskStore};
use cronhold_store::{
    AheadCommit, Chunk, DefinitionPage, Fault, HandleId, Hint, HintBoard, Obligation, OutputSizes, Page, Pending,
    Query, Store, StoreHealthReport, Unit, UnitReceipt, UnitRefusal, WalkPage, WalkPlace, WriterId,
};
use rusqlite::OptionalExtension;

use crate::open::{Options, SqliteOpenError, check_reader, open_first};
use crate::outputs;
use crate::pool::{ReadError, ReaderPool};
use crate::records::TableReader;
use crate::tasks::SqliteTaskStore;
use crate::writer::{self, CommitResults, EncodedUnit, PendingReply, SEAL_REASON, WriterRequest, WriterThread};

/// A handle on a store in a file. A clone is another handle on the same store with its own queue of hints. Dropping the
/// last handle closes the file.
pub struct SqliteStore {
    id: HandleId,
    shared: Arc<SqliteShared>,
}

/// What all handles share. The readers' connections are dropped before the writer's, which does the final checkpoint.
struct SqliteShared {
    path: PathBuf,
    options: Options,
    hints: Arc<HintBoard>,
    task_board: Arc<TaskBoard>,
    pool: ReaderPool,
    /// `None` if the file is open for reading only.
    writer: Option<WriterThread>,
}

impl SqliteStore {
    /// Opens a store for reading and writing. Creates the file if it does not exist, and migrates an older schema. Only
    /// one process at a time can open it for writing.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, SqliteOpenError> {
        let mut path = path.as_ref().to_owned();
        if path.is_symlink() {
            // Resolved, so that a process that uses the link and one that uses the file take the same lock.
            path = path.canonicalize().map_err(|error| SqliteOpenError::Io { path, error })?;
        }
        let opened = open_first(&path, &options)?;
        tracing::debug!(event = "sqlite_opened", path = %path.display(), "opened {}", path.display());
        let hints = Arc::new(HintBoard::default());
        let writer = WriterThread::start(path.clone(), options.clone(), Arc::clone(&hints), opened);
        let writer = writer.map_err(|error| SqliteOpenError::Io { path: path.clone(), error })?;
        Ok(Self::new(path, options, hints, Some(writer)))
    }

    /// Opens a store for reading only. Takes no lock and writes nothing, so a daemon may be writing at the same time.
    pub fn open_reader(path: impl AsRef<Path>, options: Options) -> Result<Self, SqliteOpenError> {
        let path = path.as_ref().to_owned();
        check_reader(&path)?;
        Ok(Self::new(path, options, Arc::new(HintBoard::default()), None))
    }

    fn new(path: PathBuf, options: Options, hints: Arc<HintBoard>, writer: Option<WriterThread>) -> Self {
        let id = hints.join();
        let pool = ReaderPool::new(path.clone());
        Self { id, shared: Arc::new(SqliteShared { path, options, hints, task_board: Arc::default(), pool, writer }) }
    }

    /// The tasks of this store.
    pub fn tasks(&self) -> SqliteTaskStore {
        SqliteTaskStore::new(self.clone(), Arc::clone(&self.shared.task_board))
    }

    pub(crate) fn now(&self) -> Instant {
        (self.shared.options.clock)()
    }

    pub(crate) fn read<T>(&self, work: impl FnOnce(TableReader<'_>) -> Result<T, ReadError>) -> Result<T, Fault> {
        let SqliteShared { path, options, pool, .. } = &*self.shared;
        pool.read(|connection| work(TableReader { connection, path, zones: &options.zones }))
    }

    async fn commit_encoded(&self, units: Vec<EncodedUnit>) -> Vec<Result<UnitReceipt, UnitRefusal>> {
        self.commit_by(units.len(), |by, reply| WriterRequest::Commit { units, by, reply }).await
    }

    /// Commits `count` units by a request to the writer.
    pub(crate) async fn commit_by(
        &self,
        count: usize,
        request: impl FnOnce(HandleId, PendingReply<CommitResults>) -> WriterRequest,
    ) -> Vec<Result<UnitReceipt, UnitRefusal>> {
        match self.request(|reply| request(self.id, reply)).await {
            // The units are freed here instead of by the writer thread.
            Ok(CommitResults { results, units }) => {
                drop(units);
                results
            }
            Err(fault) => vec![Err(fault.into()); count],
        }
    }

    /// Sends a request that has no reply to the writer.
    pub(crate) fn send(&self, request: WriterRequest) {
        if let Some(writer) = &self.shared.writer {
            writer.send(request);
        }
    }

    async fn set_seal(&self, reason: Option<String>) -> Result<(), Fault> {
        self.request(|reply| WriterRequest::Seal { reason, reply }).await?
    }

    /// Why the store is sealed, if it is and can be read.
    fn sealed(&self) -> Option<String> {
        let read = |reader: TableReader<'_>| {
            let reason = reader.connection.prepare_cached(SEAL_REASON)?.query_row([], |row| row.get(0));
            Ok(reason.optional()?)
        };
        self.read(read).ok().flatten()
    }

    /// Sends a request to the writer and waits for its reply.
    pub(crate) async fn request<T>(&self, request: impl FnOnce(PendingReply<T>) -> WriterRequest) -> Result<T, Fault> {
        match &self.shared.writer {
            Some(writer) => writer.request(request).await,
            None => Err(Fault::Permanent(format!("{} is open for reading only", self.shared.path.display()))),
        }
    }
}

impl Store for SqliteStore {
    fn enroll(&self) -> Pending<'_, Result<WriterId, Fault>> {
        Box::pin(async move { self.request(|reply| WriterRequest::Enroll { reply }).await? })
    }

    /// Never shared: only one process writes to the file, and it has one node. A node that starts again after a fault
    /// enrolls again, and is still the only one.
    fn is_shared(&self) -> bool {
        false
    }

    fn load<'a>(&'a self, keys: &'a [RecordKey]) -> Pending<'a, Result<Vec<Option<StoredRecord>>, Fault>> {
        Box::pin(async move {
            let now = self.now();
            self.read(|reader| keys.iter().map(|key| reader.load(key, now)).collect())
        })
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        Box::pin(self.commit_encoded(units.into_iter().map(EncodedUnit::new).collect()))
    }

    /// Encodes the units immediately: that is most of the work outside the writer thread.
    fn prepare_commit(self: Arc<Self>, units: Vec<Unit>) -> Pending<'static, Vec<Result<UnitReceipt, UnitRefusal>>> {
        let units = units.into_iter().map(EncodedUnit::new).collect();
        Box::pin(async move { self.commit_encoded(units).await })
    }

    fn begin_ahead(self: Arc<Self>) -> Box<dyn AheadCommit> {
        writer::begin_ahead(self)
    }

    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize,
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>> {
        Box::pin(async move { self.read(|reader| reader.due(after, until, limit)) })
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        Box::pin(async move { self.read(|reader| reader.page(query, limit)) })
    }

    fn walk<'a>(
        &'a self,
        kind: RecordKind,
        from: Option<&'a WalkPlace>,
        limit: usize,
    ) -> Pending<'a, Result<WalkPage, Fault>> {
        Box::pin(async move {
            let now = self.now();
            self.read(|reader| reader.walk(kind, from, limit, now))
        })
    }

    fn definitions<'a>(&'a self, after: Option<&'a JobId>, limit: usize) -> Pending<'a, Result<DefinitionPage, Fault>> {
        Box::pin(async move { self.read(|reader| reader.definitions(after, limit)) })
    }

    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>> {
        Box::pin(async move {
            let bytes = bytes.to_vec();
            self.request(|reply| WriterRequest::Append { run, from, bytes, reply }).await?
        })
    }

    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>> {
        Box::pin(async move {
            self.read(|reader| outputs::read(reader.connection, run, from, most).map_err(ReadError::from))
        })
    }

    fn outputs(&self, after: Option<RunId>, limit: usize) -> Pending<'_, Result<Vec<RunId>, Fault>> {
        Box::pin(
            async move { self.read(|reader| outputs::list(reader.connection, after, limit).map_err(ReadError::from)) },
        )
    }

    fn output_sizes<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<OutputSizes, Fault>> {
        Box::pin(async move { self.read(|reader| outputs::sizes(reader.connection, runs).map_err(ReadError::from)) })
    }

    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>> {
        Box::pin(async move {
            let runs = runs.to_vec();
            self.request(|reply| WriterRequest::DropOutputs { runs, reply }).await?
        })
    }

    fn expire_locks(&self, before: Instant) -> Pending<'_, Result<(), Fault>> {
        Box::pin(async move { self.request(|reply| WriterRequest::ExpireLocks { before, reply }).await? })
    }

    fn beat<'a>(
        &'a self,
        node: &'a NodeRecord,
        locks: &'a [(LockName, RunId)],
    ) -> Pending<'a, Result<Vec<(LockName, RunId)>, Fault>> {
        Box::pin(async move {
            let (node, locks, by) = (node.clone(), locks.to_vec(), self.id);
            self.request(|reply| WriterRequest::Heartbeat { node, locks, by, reply }).await?
        })
    }

    fn seal<'a>(&'a self, reason: &'a str) -> Pending<'a, Result<(), Fault>> {
        Box::pin(self.set_seal(Some(reason.to_owned())))
    }

    fn unseal(&self) -> Pending<'_, Result<(), Fault>> {
        Box::pin(self.set_seal(None))
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        Box::pin(poll_fn(|context| self.shared.hints.poll(self.id, context.waker())))
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        Box::pin(async move { Ok(self.now()) })
    }

    fn task_store(&self) -> Option<Arc<dyn TaskStore>> {
        Some(Arc::new(self.tasks()))
    }

    fn health(&self) -> Pending<'_, StoreHealthReport> {
        Box::pin(async move {
            let path = self.shared.path.display();
            let sealed = self.sealed();
            match &self.shared.writer {
                Some(writer) => {
                    let counters = writer.counters();
                    StoreHealthReport {
                        trouble: counters.failure(),
                        description: format!("SQLite at {path}"),
                        commits: counters.commits(),
                        units: counters.units(),
                        sealed,
                        warnings: Vec::new(),
                    }
                }
                None => {
                    let description = format!("SQLite at {path}, read-only");
                    StoreHealthReport { trouble: None, description, commits: 0, units: 0, sealed, warnings: Vec::new() }
                }
            }
        })
    }
}

impl Clone for SqliteStore {
    fn clone(&self) -> Self {
        Self { id: self.shared.hints.join(), shared: Arc::clone(&self.shared) }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.shared.hints.leave(self.id);
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteStore({}, {:?})", self.shared.path.display(), self.id)
    }
}

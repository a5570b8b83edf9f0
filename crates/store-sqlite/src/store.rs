//! The port, put together: what is read is read on the caller's thread when its future is first polled; what is written
//! goes to the writer.

use std::fmt;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cronhold_core::RunId;
use cronhold_core::record::{Key, LockName, Node, Stored};
use cronhold_schedule::Instant;
use cronhold_store::{
    Chunk, Committed, Fault, Health, Hint, Obligation, Page, Pending, Query, Refusal, Store, Unit, Writer,
};

use crate::hints::{HandleId, Hints};
use crate::open::{OpenError, Options, check_reader, open_first};
use crate::outputs;
use crate::pool::{Pool, ReadError};
use crate::records::Reader;
use crate::writer::{Order, Request, Settled, Ticket, WriterThread};

/// A handle on a store in a file. Clones are other handles on the same store; each has hints of its own. The file is
/// closed with the last of them.
pub struct SqliteStore {
    id: HandleId,
    shared: Arc<Shared>,
}

/// What all handles share. The connections of readers are closed before the writer's, which tidies up last.
struct Shared {
    path: PathBuf,
    options: Options,
    hints: Arc<Hints>,
    enrolled: AtomicU64,
    pool: Pool,
    /// None when the file is open for reading only.
    writer: Option<WriterThread>,
}

impl SqliteStore {
    /// Opens a store for reading and writing; makes it when there is none, and updates one with older tables. One process
    /// can have it open like this.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, OpenError> {
        let mut path = path.as_ref().to_owned();
        if path.is_symlink() {
            // By its real name, so that whoever comes by the link finds the same lock.
            path = path.canonicalize().map_err(|error| OpenError::Io { path, error })?;
        }
        let opened = open_first(&path, &options)?;
        tracing::debug!(event = "sqlite_opened", path = %path.display(), "opened {}", path.display());
        let hints = Arc::new(Hints::default());
        let writer = WriterThread::start(path.clone(), options.clone(), Arc::clone(&hints), opened);
        let writer = writer.map_err(|error| OpenError::Io { path: path.clone(), error })?;
        Ok(Self::new(path, options, hints, Some(writer)))
    }

    /// Opens a store for reading alone, beside a daemon or without one. It takes no lock and writes nothing.
    pub fn open_reader(path: impl AsRef<Path>, options: Options) -> Result<Self, OpenError> {
        let path = path.as_ref().to_owned();
        check_reader(&path)?;
        Ok(Self::new(path, options, Arc::new(Hints::default()), None))
    }

    fn new(path: PathBuf, options: Options, hints: Arc<Hints>, writer: Option<WriterThread>) -> Self {
        let id = hints.join();
        let pool = Pool::new(path.clone());
        Self { id, shared: Arc::new(Shared { path, options, hints, enrolled: AtomicU64::new(0), pool, writer }) }
    }

    fn now(&self) -> Instant {
        (self.shared.options.clock)()
    }

    fn read<T>(&self, work: impl FnOnce(Reader<'_>) -> Result<T, ReadError>) -> Result<T, Fault> {
        let Shared { path, options, pool, .. } = &*self.shared;
        pool.read(|connection| work(Reader { connection, path, zones: &options.zones }))
    }

    async fn carry_out(&self, orders: Vec<Order>) -> Vec<Result<Committed, Refusal>> {
        let (asked, by) = (orders.len(), self.id);
        match self.ask(|ticket| Request::Commit { orders, by, ticket }).await {
            // They come back with the answer, to be freed here and not by the writer.
            Ok(Settled { results, orders }) => {
                drop(orders);
                results
            }
            Err(fault) => vec![Err(fault.into()); asked],
        }
    }

    async fn ask<T>(&self, request: impl FnOnce(Ticket<T>) -> Request) -> Result<T, Fault> {
        match &self.shared.writer {
            Some(writer) => writer.ask(request).await,
            None => Err(Fault::Broken(format!("{} is open for reading only", self.shared.path.display()))),
        }
    }
}

impl Store for SqliteStore {
    fn enroll(&self) -> Pending<'_, Result<Writer, Fault>> {
        Box::pin(async move {
            self.shared.enrolled.fetch_add(1, Ordering::Relaxed);
            self.ask(|ticket| Request::Enroll { ticket }).await?
        })
    }

    /// One process has the file, so that it is shared only when that process has more than one writer.
    fn is_shared(&self) -> bool {
        self.shared.enrolled.load(Ordering::Relaxed) > 1
    }

    fn load<'a>(&'a self, keys: &'a [Key]) -> Pending<'a, Result<Vec<Option<Stored>>, Fault>> {
        Box::pin(async move {
            let now = self.now();
            self.read(|reader| keys.iter().map(|key| reader.load(key, now)).collect())
        })
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<Committed, Refusal>>> {
        Box::pin(self.carry_out(units.into_iter().map(Order::new).collect()))
    }

    /// Units are encoded at once: they are most of what there is to do outside the writer.
    fn prepare_commit(self: Arc<Self>, units: Vec<Unit>) -> Pending<'static, Vec<Result<Committed, Refusal>>> {
        let orders = units.into_iter().map(Order::new).collect();
        Box::pin(async move { self.carry_out(orders).await })
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

    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>> {
        Box::pin(async move {
            let bytes = bytes.to_vec();
            self.ask(|ticket| Request::Append { run, from, bytes, ticket }).await?
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

    fn drop_outputs<'a>(&'a self, runs: &'a [RunId]) -> Pending<'a, Result<(), Fault>> {
        Box::pin(async move {
            let runs = runs.to_vec();
            self.ask(|ticket| Request::DropOutputs { runs, ticket }).await?
        })
    }

    fn beat<'a>(&'a self, node: &'a Node, locks: &'a [(LockName, RunId)]) -> Pending<'a, Result<Vec<LockName>, Fault>> {
        Box::pin(async move {
            let (node, locks, by) = (node.clone(), locks.to_vec(), self.id);
            self.ask(|ticket| Request::Beat { node, locks, by, ticket }).await?
        })
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        Box::pin(poll_fn(|context| self.shared.hints.poll(self.id, context.waker())))
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        Box::pin(async move { Ok(self.now()) })
    }

    fn health(&self) -> Pending<'_, Health> {
        Box::pin(async move {
            let path = self.shared.path.display();
            match &self.shared.writer {
                Some(writer) => {
                    let tally = writer.tally();
                    Health {
                        trouble: tally.trouble(),
                        description: format!("SQLite at {path}"),
                        commits: tally.commits.load(Ordering::Relaxed),
                        units: tally.units.load(Ordering::Relaxed),
                        warnings: Vec::new(),
                    }
                }
                None => {
                    let description = format!("SQLite at {path}, for reading only");
                    Health { trouble: None, description, commits: 0, units: 0, warnings: Vec::new() }
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

//! The writer thread. It takes all queued requests, executes them in one transaction with one sync, and replies when
//! they are durable. After a failure it continues with the next batch.

mod ahead;
mod batch;
mod checkpoint;
mod locks;
mod outputs;
mod queue;
mod reply;
mod request;
mod seal;
mod statements;
mod version_cache;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use cronhold_core::record::RecordKey;
use cronhold_schedule::Span;
use cronhold_store::lock_mutex;
use cronhold_store::{Fault, Hint, HintBoard};
use rusqlite::Connection;

use self::ahead::OpenTransaction;
pub(crate) use self::ahead::begin as begin_ahead;
use self::batch::{AttemptError, CommitMode, attempt};
use self::checkpoint::{Checkpointer, LogLength};
use self::queue::WriterQueue;
use self::reply::reply_channel;
pub(crate) use self::request::{CommitResults, EncodedUnit, PendingReply, WriterRequest};
pub(crate) use self::seal::REASON as SEAL_REASON;
use self::statements::Statements;
use crate::faults::{self, ErrorPhase, fault};
use crate::lock_file::{FileIdentity, LockFile};
use crate::open::{Options, open_again};

/// A commit that takes this long is logged.
const SLOW_COMMIT: Span = Span::from_millis(100);

/// The handle through which callers reach the writer thread. Dropping it executes what is queued and ends the thread.
#[derive(Debug)]
pub(crate) struct WriterThread {
    queue: Arc<WriterQueue>,
    counters: Arc<WriterCounters>,
    thread: Option<JoinHandle<()>>,
    /// Released after the thread has ended.
    _lock: LockFile,
}

/// Totals of the writer thread, and why its last batch failed.
#[derive(Debug, Default)]
pub(crate) struct WriterCounters {
    commits: AtomicU64,
    units: AtomicU64,
    failure: Mutex<Option<String>>,
}

/// What runs on the writer thread.
struct WriterLoop {
    path: PathBuf,
    file: FileIdentity,
    options: Options,
    queue: Arc<WriterQueue>,
    counters: Arc<WriterCounters>,
    hints: Arc<HintBoard>,
}

impl WriterThread {
    pub(crate) fn start(
        path: PathBuf,
        options: Options,
        hints: Arc<HintBoard>,
        (lock, connection): (LockFile, Connection),
    ) -> std::io::Result<Self> {
        let (queue, counters) = (Arc::new(WriterQueue::default()), Arc::new(WriterCounters::default()));
        let file = FileIdentity::of(&path)?;
        let (loop_queue, loop_counters) = (Arc::clone(&queue), Arc::clone(&counters));
        let writer = WriterLoop { path, file, options, queue: loop_queue, counters: loop_counters, hints };
        let work = move || writer.run(connection);
        let thread = std::thread::Builder::new().name("sqlite writer".to_owned()).spawn(work)?;
        Ok(Self { queue, counters, thread: Some(thread), _lock: lock })
    }

    /// Sends a request to the writer and waits for its reply.
    pub(crate) async fn request<T>(&self, request: impl FnOnce(PendingReply<T>) -> WriterRequest) -> Result<T, Fault> {
        let (sender, receiver) = reply_channel();
        if !self.queue.push(request(PendingReply::new(sender))).await {
            return Err(Fault::Unavailable("the store is closing".to_owned()));
        }
        receiver.await.ok_or_else(|| Fault::OutcomeUnknown("the writer thread failed".to_owned()))
    }

    /// Sends a request that has no reply.
    pub(crate) fn send(&self, request: WriterRequest) {
        self.queue.push_now(request);
    }

    pub(crate) fn counters(&self) -> &WriterCounters {
        &self.counters
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // The panic of a writer thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl WriterCounters {
    /// Transactions that were committed.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Units and other requests that were committed.
    pub(crate) fn units(&self) -> u64 {
        self.units.load(Ordering::Relaxed)
    }

    /// Why the last batch failed; `None` after one that succeeded.
    pub(crate) fn failure(&self) -> Option<String> {
        lock_mutex(&self.failure).clone()
    }

    fn count(&self, batch: &[WriterRequest]) {
        let units: usize = batch.iter().map(WriterRequest::unit_count).sum();
        self.units.fetch_add(units as u64, Ordering::Relaxed);
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.set_failure(None);
    }

    fn set_failure(&self, failure: Option<String>) {
        *lock_mutex(&self.failure) = failure;
    }
}

impl WriterLoop {
    /// Runs until the queue is closed and empty. A connection that becomes unusable is replaced.
    fn run(&self, first: Connection) {
        let mut spare = Some(first);
        let log = LogLength::default();
        let mut checkpointer = Checkpointer::start(self.path.clone(), self.options.clone());
        while let Some(batch) = self.queue.take_batch() {
            // Before the file is opened again, because opening would create an empty one.
            if let Err(fault) = self.check_files() {
                self.fail(batch, &fault);
                continue;
            }
            let opened = spare.take().map_or_else(|| open_again(&self.path, &self.options), Ok);
            let watched = opened.and_then(|mut connection| log.watch(&mut connection).map(|()| connection));
            let connection = match watched {
                Ok(connection) => connection,
                Err(error) => {
                    self.fail(batch, &fault(&self.path, &error, ErrorPhase::Write));
                    continue;
                }
            };
            let checkpoint = || checkpointer.run_if_due(&log, &connection);
            // No code in there is known to panic. If it does, waiting callers get an unknown outcome, and the next
            // batch gets a new connection.
            let _ = catch_unwind(AssertUnwindSafe(|| self.serve(&connection, batch, checkpoint)));
        }
    }

    /// Commits batches until the queue is closed and empty, or the connection becomes unusable.
    fn serve(&self, connection: &Connection, first: Vec<WriterRequest>, mut checkpoint: impl FnMut()) {
        let mut statements = match Statements::prepare(connection) {
            Ok(statements) => statements,
            Err(error) => return self.fail(first, &fault(&self.path, &error, ErrorPhase::Write)),
        };
        let mut open: Option<OpenTransaction> = None;
        let mut next = Some(first);
        while let Some(mut batch) = next {
            let mut ahead = None;
            batch.retain(|request| match request {
                WriterRequest::Execute { ahead: units } => {
                    ahead = Some(Arc::clone(units));
                    false
                }
                WriterRequest::Discard { ahead: units } => {
                    if open.as_ref().is_some_and(|open| open.is_of(units)) {
                        ahead::rollback(&mut statements, &mut open);
                    }
                    false
                }
                _ => true,
            });
            if !batch.is_empty() {
                ahead = ahead.or_else(|| open.as_ref().map(OpenTransaction::queue));
                self.write(connection, &mut statements, &mut open, batch);
                checkpoint();
            }
            if let Some(ahead) = ahead {
                self.execute_ahead(&mut statements, &mut open, &ahead);
            }
            if !connection.is_autocommit() && open.is_none() {
                return;
            }
            next = self.queue.take_batch();
        }
        ahead::rollback(&mut statements, &mut open);
    }

    /// Commits a batch, with what was executed ahead of it, and replies.
    fn write(
        &self,
        connection: &Connection,
        statements: &mut Statements<'_>,
        open: &mut Option<OpenTransaction>,
        batch: Vec<WriterRequest>,
    ) {
        let began = (self.options.clock)();
        let mut batch = self.commit_open(statements, open, batch);
        if !batch.is_empty() {
            match self.commit(connection, statements, &mut batch) {
                Ok(()) => self.reply(batch),
                Err(fault) => return self.fail(batch, &fault),
            }
        }
        let took = (self.options.clock)().since(began);
        if took >= SLOW_COMMIT {
            tracing::debug!(event = "sqlite_commit_slow", took_ms = took.millis(), "a commit took {took}");
        }
    }

    /// Commits one transaction with one sync. On failure nothing of it has happened, unless the fault says that the
    /// outcome is unknown.
    fn commit(
        &self,
        connection: &Connection,
        statements: &mut Statements<'_>,
        batch: &mut [WriterRequest],
    ) -> Result<(), Fault> {
        self.check_files()?;
        let now = (self.options.clock)();
        let mut mode = CommitMode::Optimistic;
        loop {
            statements.begin().map_err(|error| fault(&self.path, &error, ErrorPhase::Write))?;
            let is_optimistic = mode == CommitMode::Optimistic;
            let failed = match attempt(statements, batch, now, mode) {
                Ok(()) => match statements.commit() {
                    Ok(()) => return Ok(()),
                    Err(error) => Some(fault(&self.path, &error, ErrorPhase::Commit)),
                },
                Err(AttemptError::PartialUnit(_)) if is_optimistic => None,
                Err(AttemptError::Sql(error)) if is_optimistic && faults::is_of_one_unit(&error) => None,
                Err(AttemptError::Sql(error)) => Some(fault(&self.path, &error, ErrorPhase::Write)),
                Err(AttemptError::PartialUnit(refusal)) => Some(Fault::Permanent(refusal.to_string())),
            };
            statements.clear_cache();
            // Some errors roll the transaction back by themselves. If it cannot be rolled back, the connection is
            // closed.
            if !connection.is_autocommit() && statements.rollback().is_err() {
                return Err(failed.unwrap_or_else(|| Fault::Unavailable("cannot roll back a transaction".to_owned())));
            }
            match failed {
                Some(fault) => return Err(fault),
                None => mode = CommitMode::WithSavepoints,
            }
        }
    }

    fn check_files(&self) -> Result<(), Fault> {
        let Some(missing) = self.file.missing() else { return Ok(()) };
        Err(Fault::ReadOnly(format!(
            "{} was removed or replaced while in use, and further writes would be lost; stop the daemon, put the store back \
             in its place and start the daemon again",
            missing.display()
        )))
    }

    /// Sends the replies of a committed batch, and notifies other handles.
    fn reply(&self, batch: Vec<WriterRequest>) {
        self.counters.count(&batch);
        for request in batch {
            self.notify(&request);
            request.reply();
        }
    }

    fn fail(&self, batch: Vec<WriterRequest>, fault: &Fault) {
        tracing::debug!(event = "sqlite_commit_failed", requests = batch.len(), "{fault}");
        self.counters.set_failure(Some(fault.to_string()));
        batch.into_iter().for_each(|request| request.fail(fault));
    }

    fn notify(&self, request: &WriterRequest) {
        match request {
            WriterRequest::Commit { units, by, reply } if self.hints.has_others(*by) => {
                let done = reply.result.iter().flat_map(|committed| &committed.results).map(Result::is_ok);
                let keys = units.iter().zip(done).filter(|(_, done)| *done).flat_map(|(unit, _)| unit.keys());
                let hints: Vec<Hint> = keys.map(Hint::new).collect();
                self.hints.publish(*by, &hints);
            }
            WriterRequest::Heartbeat { node, by, .. } => {
                self.hints.publish(*by, &[Hint::new(RecordKey::Node(node.id))]);
            }
            _ => {}
        }
    }
}

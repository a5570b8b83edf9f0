//! The one thread that writes. It takes what waits, does all of it in one transaction with one sync, and answers when
//! that is durable. Whatever fails, it goes on with the next.

mod batch;
mod checkpoint;
mod locks;
mod memory;
mod outputs;
mod queue;
mod reply;
mod request;
mod statements;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use cronhold_core::record::Key;
use cronhold_schedule::Span;
use cronhold_store::Fault;
use rusqlite::Connection;

use self::batch::{Care, Setback, attempt};
use self::checkpoint::{Checkpointer, LogLength};
use self::queue::Queue;
use self::reply::reply;
pub(crate) use self::request::{Order, Request, Settled, Ticket};
use self::statements::Statements;
use crate::faults::{self, Moment, fault};
use crate::hints::{HandleId, Hints};
use crate::lock_file::{Footprint, LockFile};
use crate::open::{Options, open_again};

/// A commit that takes this long is logged.
const SLOW_COMMIT: Span = Span::from_millis(100);

/// The writer as its callers see it.
#[derive(Debug)]
pub(crate) struct WriterThread {
    queue: Arc<Queue>,
    tally: Arc<Tally>,
    thread: Option<JoinHandle<()>>,
    /// Freed when the thread has ended.
    _lock: LockFile,
}

/// What the writer has done.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) commits: AtomicU64,
    pub(crate) units: AtomicU64,
    trouble: Mutex<Option<String>>,
}

/// The writer's own side.
struct Scribe {
    path: PathBuf,
    footprint: Footprint,
    options: Options,
    queue: Arc<Queue>,
    tally: Arc<Tally>,
    hints: Arc<Hints>,
}

impl WriterThread {
    pub(crate) fn start(
        path: PathBuf,
        options: Options,
        hints: Arc<Hints>,
        (lock, connection): (LockFile, Connection),
    ) -> std::io::Result<Self> {
        let (queue, tally) = (Arc::new(Queue::default()), Arc::new(Tally::default()));
        let footprint = Footprint::of(&path)?;
        let scribe = Scribe { path, footprint, options, queue: Arc::clone(&queue), tally: Arc::clone(&tally), hints };
        let work = move || scribe.work(connection);
        let thread = std::thread::Builder::new().name("sqlite writer".to_owned()).spawn(work)?;
        Ok(Self { queue, tally, thread: Some(thread), _lock: lock })
    }

    /// Asks the writer and waits for its answer.
    pub(crate) async fn ask<T>(&self, request: impl FnOnce(Ticket<T>) -> Request) -> Result<T, Fault> {
        let (answer, reply) = reply();
        if !self.queue.put(request(Ticket::new(answer))).await {
            return Err(Fault::Away("the store is being closed".to_owned()));
        }
        reply.await.ok_or_else(|| Fault::Unknown("the writer broke off".to_owned()))
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has nothing left to say.
            let _ = thread.join();
        }
    }
}

impl Tally {
    /// What is wrong, if something is.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

impl Scribe {
    /// Works until the queue is closed and empty. A connection that cannot be used any longer is replaced.
    fn work(&self, first: Connection) {
        let mut spare = Some(first);
        let log = LogLength::default();
        let mut checkpointer = Checkpointer::start(self.path.clone(), self.options.clone());
        while let Some(batch) = self.queue.take() {
            // Before it is opened again, which would make an empty one.
            if let Err(fault) = self.look_for_files() {
                self.fail(batch, &fault);
                continue;
            }
            let opened = spare.take().map_or_else(|| open_again(&self.path, &self.options), Ok);
            let watched = opened.and_then(|mut connection| log.watch(&mut connection).map(|()| connection));
            let connection = match watched {
                Ok(connection) => connection,
                Err(error) => {
                    self.fail(batch, &fault(&self.path, &error, Moment::Write));
                    continue;
                }
            };
            let tend = || checkpointer.tend(&log, &connection);
            // Nothing in there is known to panic. If something does, those who wait are told that nobody knows, and the
            // next find a new connection.
            let _ = catch_unwind(AssertUnwindSafe(|| self.serve(&connection, batch, tend)));
        }
    }

    /// Does batches until the queue is closed and empty, or the connection cannot be used any longer.
    fn serve(&self, connection: &Connection, first: Vec<Request>, mut tend: impl FnMut()) {
        let mut statements = match Statements::prepare(connection) {
            Ok(statements) => statements,
            Err(error) => return self.fail(first, &fault(&self.path, &error, Moment::Write)),
        };
        let mut next = Some(first);
        while let Some(mut batch) = next {
            let began = (self.options.clock)();
            match self.commit(connection, &mut statements, &mut batch) {
                Ok(()) => {
                    let took = (self.options.clock)().since(began);
                    if took >= SLOW_COMMIT {
                        tracing::debug!(event = "sqlite_commit_slow", took_ms = took.millis(), "a commit took {took}");
                    }
                    self.settle(batch);
                    tend();
                }
                Err(fault) => self.fail(batch, &fault),
            }
            if !connection.is_autocommit() {
                return;
            }
            next = self.queue.take();
        }
    }

    /// One transaction with one sync. When it fails, nothing of it has happened, or the fault says that nobody knows.
    fn commit(
        &self,
        connection: &Connection,
        statements: &mut Statements<'_>,
        batch: &mut [Request],
    ) -> Result<(), Fault> {
        self.look_for_files()?;
        let now = (self.options.clock)();
        let mut care = Care::Bold;
        loop {
            statements.begin().map_err(|error| fault(&self.path, &error, Moment::Write))?;
            let failed = match attempt(statements, batch, now, care) {
                Ok(()) => match statements.commit() {
                    Ok(()) => return Ok(()),
                    Err(error) => Some(fault(&self.path, &error, Moment::Commit)),
                },
                Err(Setback::Torn(_)) if care == Care::Bold => None,
                Err(Setback::Sql(error)) if care == Care::Bold && faults::is_of_one_unit(&error) => None,
                Err(Setback::Sql(error)) => Some(fault(&self.path, &error, Moment::Write)),
                Err(Setback::Torn(refusal)) => Some(Fault::Broken(refusal.to_string())),
            };
            statements.forget_all();
            // Some errors undo the transaction by themselves. If it cannot be undone, the connection is given up.
            if !connection.is_autocommit() && statements.rollback().is_err() {
                return Err(failed.unwrap_or_else(|| Fault::Away("a transaction could not be undone".to_owned())));
            }
            match failed {
                Some(fault) => return Err(fault),
                None => care = Care::Careful,
            }
        }
    }

    fn look_for_files(&self) -> Result<(), Fault> {
        let Some(missing) = self.footprint.missing() else { return Ok(()) };
        Err(Fault::ReadOnly(format!(
            "{} was removed or replaced while it was in use, and what is written now would be lost (stop the daemon, put \
             the store back in its place, start the daemon again)",
            missing.display()
        )))
    }

    fn settle(&self, batch: Vec<Request>) {
        let units: usize = batch.iter().map(Request::units).sum();
        self.tally.units.fetch_add(units as u64, Ordering::Relaxed);
        self.tally.commits.fetch_add(1, Ordering::Relaxed);
        self.tally.set_trouble(None);
        let told = self.hints.has_others();
        for request in batch {
            if told {
                self.tell(&request);
            }
            request.settle();
        }
    }

    fn fail(&self, batch: Vec<Request>, fault: &Fault) {
        tracing::debug!(event = "sqlite_commit_failed", requests = batch.len(), "{fault}");
        self.tally.set_trouble(Some(fault.to_string()));
        batch.into_iter().for_each(|request| request.fail(fault));
    }

    fn tell(&self, request: &Request) {
        let tell = |by: HandleId, keys: Vec<Key>| self.hints.tell(by, &keys);
        match request {
            Request::Commit { orders, by, ticket } => {
                let done = ticket.result.iter().flat_map(|settled| &settled.results).map(Result::is_ok);
                let keys = orders.iter().zip(done).filter(|(_, done)| *done).flat_map(|(order, _)| order.keys());
                tell(*by, keys.collect());
            }
            Request::Beat { node, by, .. } => tell(*by, vec![Key::Node(node.id)]),
            Request::Enroll { .. } | Request::Append { .. } | Request::DropOutputs { .. } => {}
        }
    }
}

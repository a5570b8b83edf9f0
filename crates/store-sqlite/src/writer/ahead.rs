//! Units that are executed before their commit is requested, in a transaction that stays open. Other connections do not
//! see it, and a crash discards it. If anything else has to be written meanwhile, the transaction is rolled back, and
//! the units are executed again when the writer is idle, or with their commit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cronhold_schedule::Instant;
use cronhold_store::{AheadCommit, CommitFuture, Fault, Unit, UnitReceipt, UnitRefusal, lock_mutex};

use super::WriterLoop;
use super::batch::execute;
use super::request::{CommitResults, EncodedUnit, PendingReply, WriterRequest};
use super::statements::Statements;
use crate::faults::{ErrorPhase, fault};
use crate::store::SqliteStore;

/// Units of one commit that are executed ahead. They stay in memory until then.
const UNITS_MAX: usize = 16 * 1024;
/// How often the same units are executed, if other requests keep interrupting.
const ATTEMPTS_MAX: usize = 4;
/// Units after which the writer looks for other requests.
const LOOK_AFTER: usize = 32;

/// Units of one commit that are not executed yet. The writer takes them out to execute them, and puts them back if it
/// has to roll back.
#[derive(Debug, Default)]
pub(crate) struct AheadQueue {
    waiting: Mutex<Vec<EncodedUnit>>,
    attempts: AtomicUsize,
}

/// The side of the caller. Dropping it without a commit discards the units.
struct SqliteAhead {
    store: Arc<SqliteStore>,
    queue: Arc<AheadQueue>,
    count: usize,
}

/// A transaction in which units are executed, on the writer thread.
#[derive(Debug)]
pub(super) struct OpenTransaction {
    queue: Arc<AheadQueue>,
    executed: Vec<EncodedUnit>,
    results: Vec<Result<UnitReceipt, UnitRefusal>>,
}

/// Begins a commit of units that are executed ahead.
pub(crate) fn begin(store: Arc<SqliteStore>) -> Box<dyn AheadCommit> {
    Box::new(SqliteAhead { store, queue: Arc::default(), count: 0 })
}

impl AheadCommit for SqliteAhead {
    fn push(&mut self, units: Vec<Unit>) {
        self.count += units.len();
        lock_mutex(&self.queue.waiting).extend(units.into_iter().map(EncodedUnit::new));
        self.store.send(WriterRequest::Execute { ahead: Arc::clone(&self.queue) });
    }

    fn commit(self: Box<Self>) -> CommitFuture {
        Box::pin(async move {
            let (ahead, count) = (Arc::clone(&self.queue), self.count);
            let request = |by, reply| WriterRequest::CommitAhead { ahead, count, by, reply };
            self.store.commit_by(count, request).await
        })
    }

    fn units_max(&self) -> usize {
        UNITS_MAX
    }
}

impl Drop for SqliteAhead {
    fn drop(&mut self) {
        // After a commit there is nothing left to discard.
        lock_mutex(&self.queue.waiting).clear();
        self.store.send(WriterRequest::Discard { ahead: Arc::clone(&self.queue) });
    }
}

impl AheadQueue {
    fn is_empty(&self) -> bool {
        lock_mutex(&self.waiting).is_empty()
    }

    fn take(&self) -> Vec<EncodedUnit> {
        std::mem::take(&mut lock_mutex(&self.waiting))
    }

    /// Puts units back in front of those that were added since.
    fn put_back(&self, mut units: Vec<EncodedUnit>) {
        let mut waiting = lock_mutex(&self.waiting);
        units.append(&mut waiting);
        *waiting = units;
    }
}

impl OpenTransaction {
    pub(super) fn is_of(&self, queue: &Arc<AheadQueue>) -> bool {
        Arc::ptr_eq(&self.queue, queue)
    }

    pub(super) fn queue(&self) -> Arc<AheadQueue> {
        Arc::clone(&self.queue)
    }

    /// Executes the units that are not executed yet, until one fails or `is_interrupted`. Returns whether all were.
    fn execute_rest(
        &mut self,
        statements: &mut Statements<'_>,
        now: Instant,
        is_interrupted: impl Fn() -> bool,
    ) -> bool {
        let mut units = self.queue.take().into_iter();
        while let Some(unit) = units.next() {
            let result = execute(statements, &unit, now);
            self.executed.push(unit);
            let Ok(result) = result else {
                self.queue.put_back(units.collect());
                return false;
            };
            self.results.push(result);
            if self.executed.len().is_multiple_of(LOOK_AFTER) && is_interrupted() {
                self.queue.put_back(units.collect());
                return false;
            }
        }
        true
    }
}

impl WriterLoop {
    /// Executes units in the open transaction, or begins one. If that fails, or another request comes, it is rolled back;
    /// the commit will report the failure.
    pub(super) fn execute_ahead(
        &self,
        statements: &mut Statements<'_>,
        open: &mut Option<OpenTransaction>,
        ahead: &Arc<AheadQueue>,
    ) {
        if open.as_ref().is_some_and(|open| !open.is_of(ahead)) {
            rollback(statements, open);
        }
        if open.is_none() {
            let is_worth = !ahead.is_empty() && ahead.attempts.fetch_add(1, Ordering::Relaxed) < ATTEMPTS_MAX;
            if !is_worth || self.queue.has_other_writes(ahead) || statements.begin().is_err() {
                return;
            }
            *open = Some(OpenTransaction { queue: Arc::clone(ahead), executed: Vec::new(), results: Vec::new() });
        }
        let now = (self.options.clock)();
        let is_interrupted = || self.queue.has_other_writes(ahead);
        if open.as_mut().is_some_and(|open| !open.execute_rest(statements, now, is_interrupted)) {
            rollback(statements, open);
        }
    }

    /// Commits what was executed ahead, if all of it was and nothing else is requested. Otherwise returns the requests,
    /// with all units, and no transaction is open any more.
    pub(super) fn commit_open(
        &self,
        statements: &mut Statements<'_>,
        open: &mut Option<OpenTransaction>,
        mut batch: Vec<WriterRequest>,
    ) -> Vec<WriterRequest> {
        let now = (self.options.clock)();
        let is_complete = match (batch.as_slice(), open.as_mut()) {
            ([WriterRequest::CommitAhead { ahead, .. }], Some(open)) => {
                open.is_of(ahead) && self.check_files().is_ok() && open.execute_rest(statements, now, || false)
            }
            _ => false,
        };
        if is_complete {
            match statements.commit() {
                Ok(()) => self.reply_open(open.take(), batch.pop()),
                Err(error) => {
                    // The units may be durable, so they must not be executed again.
                    rollback(statements, open);
                    self.fail(std::mem::take(&mut batch), &fault(&self.path, &error, ErrorPhase::Commit));
                }
            }
            return batch;
        }
        rollback(statements, open);
        batch.into_iter().filter_map(with_units).collect()
    }

    /// Replies to the request for a commit that was executed ahead.
    fn reply_open(&self, done: Option<OpenTransaction>, request: Option<WriterRequest>) {
        let Some(OpenTransaction { executed: units, results, .. }) = done else { return };
        let Some(WriterRequest::CommitAhead { by, mut reply, .. }) = request else { return };
        reply.result = Some(CommitResults { results, units: Vec::new() });
        self.reply(vec![WriterRequest::Commit { units, by, reply }]);
    }
}

/// A request for a commit with its units. If a failure of the writer has lost some of them, the request fails.
fn with_units(request: WriterRequest) -> Option<WriterRequest> {
    let WriterRequest::CommitAhead { ahead, count, by, reply } = request else { return Some(request) };
    let units = ahead.take();
    if units.len() == count {
        return Some(WriterRequest::Commit { units, by, reply });
    }
    lost(reply, count);
    None
}

fn lost(reply: PendingReply<CommitResults>, count: usize) {
    let fault = UnitRefusal::Fault(Fault::Unavailable("the writer thread failed".to_owned()));
    reply.send_now(CommitResults { results: vec![Err(fault); count], units: Vec::new() });
}

/// Rolls the open transaction back, and puts its units back to be executed later.
pub(super) fn rollback(statements: &mut Statements<'_>, open: &mut Option<OpenTransaction>) {
    let Some(OpenTransaction { queue, executed, .. }) = open.take() else { return };
    queue.put_back(executed);
    statements.clear_cache();
    // If this fails, the connection stays in the transaction, and the writer replaces it.
    let _ = statements.rollback();
}

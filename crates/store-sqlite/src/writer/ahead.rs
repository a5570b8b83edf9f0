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

/// Units whose commit is not requested yet. The writer takes them out to execute them, and puts them back if it has to
/// roll back.
#[derive(Debug, Default)]
pub(crate) struct AheadUnits {
    units: Mutex<Vec<EncodedUnit>>,
    attempts: AtomicUsize,
}

/// The side of the caller. Dropping it without a commit discards the units.
struct SqliteAhead {
    store: Arc<SqliteStore>,
    ahead: Arc<AheadUnits>,
    count: usize,
}

/// A transaction in which units are executed, on the writer thread.
#[derive(Debug)]
pub(super) struct OpenTransaction {
    ahead: Arc<AheadUnits>,
    /// The executed units and their results.
    units: Vec<EncodedUnit>,
    results: Vec<Result<UnitReceipt, UnitRefusal>>,
}

/// Begins a commit of units that are executed ahead.
pub(crate) fn begin(store: Arc<SqliteStore>) -> Box<dyn AheadCommit> {
    Box::new(SqliteAhead { store, ahead: Arc::default(), count: 0 })
}

impl AheadCommit for SqliteAhead {
    fn push(&mut self, units: Vec<Unit>) {
        self.count += units.len();
        lock_mutex(&self.ahead.units).extend(units.into_iter().map(EncodedUnit::new));
        self.store.send(WriterRequest::Execute { ahead: Arc::clone(&self.ahead) });
    }

    fn commit(self: Box<Self>) -> CommitFuture {
        Box::pin(async move {
            let (ahead, count) = (Arc::clone(&self.ahead), self.count);
            self.store.commit_ahead(ahead, count).await
        })
    }

    fn units_max(&self) -> usize {
        UNITS_MAX
    }
}

impl Drop for SqliteAhead {
    fn drop(&mut self) {
        // After a commit there is nothing left to discard.
        lock_mutex(&self.ahead.units).clear();
        self.store.send(WriterRequest::Discard { ahead: Arc::clone(&self.ahead) });
    }
}

impl AheadUnits {
    fn is_empty(&self) -> bool {
        lock_mutex(&self.units).is_empty()
    }

    fn take(&self) -> Vec<EncodedUnit> {
        std::mem::take(&mut lock_mutex(&self.units))
    }

    /// Puts units back in front of those that were added since.
    fn put_back(&self, mut units: Vec<EncodedUnit>) {
        let mut waiting = lock_mutex(&self.units);
        units.append(&mut waiting);
        *waiting = units;
    }
}

impl OpenTransaction {
    pub(super) fn is_of(&self, ahead: &Arc<AheadUnits>) -> bool {
        Arc::ptr_eq(&self.ahead, ahead)
    }

    pub(super) fn units(&self) -> Arc<AheadUnits> {
        Arc::clone(&self.ahead)
    }
}

impl WriterLoop {
    /// Executes units in the open transaction, or begins one. If that fails, or another request comes, it is rolled back;
    /// the commit will report the failure.
    pub(super) fn execute_ahead(
        &self,
        statements: &mut Statements<'_>,
        open: &mut Option<OpenTransaction>,
        ahead: &Arc<AheadUnits>,
    ) {
        if open.as_ref().is_some_and(|open| !open.is_of(ahead)) {
            rollback(statements, open);
        }
        if open.is_none() {
            let is_worth = !ahead.is_empty() && ahead.attempts.fetch_add(1, Ordering::Relaxed) < ATTEMPTS_MAX;
            if !is_worth || self.queue.has_writes() || statements.begin().is_err() {
                return;
            }
            *open = Some(OpenTransaction { ahead: Arc::clone(ahead), units: Vec::new(), results: Vec::new() });
        }
        if !self.execute_rest(statements, open) {
            rollback(statements, open);
        }
    }

    /// Executes the units of the open transaction that are not executed yet. Returns false if it has to be rolled back.
    fn execute_rest(&self, statements: &mut Statements<'_>, open: &mut Option<OpenTransaction>) -> bool {
        let Some(open) = open else { return false };
        let now: Instant = (self.options.clock)();
        let mut units = open.ahead.take().into_iter();
        while let Some(unit) = units.next() {
            let result = execute(statements, &unit, now);
            open.units.push(unit);
            let is_interrupted = open.units.len().is_multiple_of(LOOK_AFTER) && self.queue.has_writes();
            match result {
                Ok(result) => open.results.push(result),
                Err(_) => {
                    open.ahead.put_back(units.collect());
                    return false;
                }
            }
            if is_interrupted {
                open.ahead.put_back(units.collect());
                return false;
            }
        }
        true
    }

    /// Commits what was executed ahead, if all of it was and nothing else is requested. Otherwise returns the requests,
    /// with all units, and no transaction is open any more.
    pub(super) fn commit_open(
        &self,
        statements: &mut Statements<'_>,
        open: &mut Option<OpenTransaction>,
        mut batch: Vec<WriterRequest>,
    ) -> Vec<WriterRequest> {
        let is_alone = match batch.as_slice() {
            [WriterRequest::CommitAhead { ahead, .. }] => open.as_ref().is_some_and(|open| open.is_of(ahead)),
            _ => false,
        };
        if is_alone && self.check_files().is_ok() && self.execute_rest(statements, open) {
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
        let Some(OpenTransaction { units, results, .. }) = done else { return };
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
    let Some(OpenTransaction { ahead, units, .. }) = open.take() else { return };
    ahead.put_back(units);
    statements.clear_cache();
    // If this fails, the connection stays in the transaction, and the writer replaces it.
    let _ = statements.rollback();
}

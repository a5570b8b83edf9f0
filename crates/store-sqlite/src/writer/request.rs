//! Requests to the writer thread. The caller encodes everything, so that the writer thread only binds and steps.

use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::decision::{LockRelease, LockTake, RecordChange};
use cronhold_core::record::{LockName, NodeRecord, RecordKey, RecordVersion};
use cronhold_schedule::Instant;
use cronhold_store::{Fault, HandleId, Unit, UnitReceipt, UnitRefusal, WriterId};
use rusqlite::types::Value;

use super::ahead::AheadQueue;
use super::reply::ReplySender;
use crate::rows::{self, RecordTable, version_value};
use crate::tasks::TaskWrite;

/// One request to the writer thread, with where its reply goes.
#[derive(Debug)]
pub(crate) enum WriterRequest {
    Commit {
        units: Vec<EncodedUnit>,
        by: HandleId,
        reply: PendingReply<CommitResults>,
    },
    /// Execute units whose commit is requested later.
    Execute {
        ahead: Arc<AheadQueue>,
    },
    /// Commit units that were to be executed ahead.
    CommitAhead {
        ahead: Arc<AheadQueue>,
        /// The number of units.
        count: usize,
        by: HandleId,
        reply: PendingReply<CommitResults>,
    },
    /// Roll back units that were executed ahead and are not committed.
    Discard {
        ahead: Arc<AheadQueue>,
    },
    /// Assign a number to a new writer.
    Enroll {
        reply: PendingReply<Result<WriterId, Fault>>,
    },
    /// Store that a node is alive, and renew its locks.
    Heartbeat {
        node: NodeRecord,
        locks: Vec<(LockName, RunId)>,
        by: HandleId,
        reply: PendingReply<Result<Vec<(LockName, RunId)>, Fault>>,
    },
    /// Append to the output of a run.
    Append {
        run: RunId,
        from: u64,
        bytes: Vec<u8>,
        reply: PendingReply<Result<u64, Fault>>,
    },
    DropOutputs {
        runs: Vec<RunId>,
        reply: PendingReply<Result<(), Fault>>,
    },
    /// Change tasks.
    Tasks(Box<dyn TaskWrite>),
    /// Seal the store with a reason, or unseal it.
    Seal {
        reason: Option<String>,
        reply: PendingReply<Result<(), Fault>>,
    },
    /// Delete free locks that were last taken before a time, and marks that have expired.
    ExpireLocks {
        before: Instant,
        reply: PendingReply<Result<(), Fault>>,
    },
}

/// The results of units, and the units themselves: they are many small allocations, which the caller frees instead of
/// the writer thread.
#[derive(Debug)]
pub(crate) struct CommitResults {
    pub(crate) results: Vec<Result<UnitReceipt, UnitRefusal>>,
    pub(crate) units: Vec<EncodedUnit>,
}

/// A reply that is held back until it is durable.
#[derive(Debug)]
pub(crate) struct PendingReply<T> {
    pub(crate) result: Option<T>,
    sender: ReplySender<T>,
}

/// A unit as the parameters of SQL statements.
#[derive(Debug)]
pub(crate) struct EncodedUnit {
    pub(crate) version: RecordVersion,
    /// Records that are compared and not written.
    pub(crate) checks: Vec<VersionCheck>,
    pub(crate) writes: Vec<RowWrite>,
    pub(crate) take: Vec<LockTake>,
    pub(crate) free: Vec<LockRelease>,
    /// Set if the unit is malformed and must not be executed.
    pub(crate) refusal: Option<UnitRefusal>,
}

/// A record that must have the expected version; `None` if it must not exist.
#[derive(Debug)]
pub(crate) struct VersionCheck {
    pub(crate) key: RecordKey,
    pub(crate) table: RecordTable,
    pub(crate) cells: Vec<Value>,
    pub(crate) expected: Option<RecordVersion>,
}

/// A record that is written if it has the expected version.
#[derive(Debug)]
pub(crate) struct RowWrite {
    pub(crate) key: RecordKey,
    pub(crate) table: RecordTable,
    pub(crate) kind: WriteKind,
    /// The parameters of the statement.
    pub(crate) cells: Vec<Value>,
}

/// Which statement writes a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Insert,
    Update,
    Delete,
}

impl WriterRequest {
    /// The amount of work, in units.
    pub(crate) fn unit_count(&self) -> usize {
        match self {
            Self::Commit { units, .. } => units.len().max(1),
            Self::CommitAhead { count, .. } => (*count).max(1),
            Self::DropOutputs { runs, .. } => runs.len().max(1),
            Self::Tasks(work) => work.unit_count(),
            Self::Execute { .. } | Self::Discard { .. } => 0,
            Self::Enroll { .. }
            | Self::Heartbeat { .. }
            | Self::Append { .. }
            | Self::Seal { .. }
            | Self::ExpireLocks { .. } => 1,
        }
    }

    /// Sends the result, which is durable now.
    pub(crate) fn reply(self) {
        match self {
            Self::Commit { units, reply: PendingReply { result, sender }, .. } => {
                if let Some(committed) = result {
                    sender.send(CommitResults { units, ..committed });
                }
            }
            // These are committed as `Commit`, or have no reply.
            Self::CommitAhead { .. } | Self::Execute { .. } | Self::Discard { .. } => {}
            Self::Enroll { reply } => reply.send(),
            Self::Heartbeat { reply, .. } => reply.send(),
            Self::Append { reply, .. } => reply.send(),
            Self::Tasks(work) => work.reply(),
            Self::DropOutputs { reply, .. } | Self::ExpireLocks { reply, .. } | Self::Seal { reply, .. } => {
                reply.send();
            }
        }
    }

    /// Replies with a fault. Refusals do not count either: the state that they are based on is rolled back too.
    pub(crate) fn fail(self, fault: &Fault) {
        match self {
            Self::Commit { units, reply, .. } => {
                let results = units.iter().map(|_| Err(UnitRefusal::Fault(fault.clone()))).collect();
                reply.sender.send(CommitResults { results, units });
            }
            Self::CommitAhead { count, reply, .. } => {
                let results = vec![Err(UnitRefusal::Fault(fault.clone())); count];
                reply.sender.send(CommitResults { results, units: Vec::new() });
            }
            Self::Execute { .. } | Self::Discard { .. } => {}
            Self::Enroll { reply } => reply.sender.send(Err(fault.clone())),
            Self::Heartbeat { reply, .. } => reply.sender.send(Err(fault.clone())),
            Self::Append { reply, .. } => reply.sender.send(Err(fault.clone())),
            Self::Tasks(work) => work.fail(fault),
            Self::DropOutputs { reply, .. } | Self::ExpireLocks { reply, .. } | Self::Seal { reply, .. } => {
                reply.sender.send(Err(fault.clone()));
            }
        }
    }
}

impl<T> PendingReply<T> {
    pub(crate) fn new(sender: ReplySender<T>) -> Self {
        Self { result: None, sender }
    }

    /// Sends a result that does not depend on a transaction.
    pub(crate) fn send_now(self, result: T) {
        self.sender.send(result);
    }

    /// Sends the result of a transaction that is durable now.
    pub(crate) fn send(self) {
        if let Some(result) = self.result {
            self.sender.send(result);
        }
    }
}

impl EncodedUnit {
    /// Encodes a unit.
    pub(crate) fn new(unit: Unit) -> Self {
        let positions = unit.change_positions();
        let Unit { version, compare, changes, take, free } = unit;
        let mut encoded = Self { version, checks: Vec::new(), writes: Vec::new(), take, free, refusal: None };
        let mut compare: Vec<_> = compare.into_iter().map(Some).collect();
        match positions {
            Ok(positions) => {
                for (change, position) in changes.into_iter().zip(positions) {
                    let (key, expected) = compare[position].take().expect("a record is changed once");
                    let table = RecordTable::of(key.kind()).expect("locks and foreign runs are not changed");
                    encoded.write(table, key, change, expected);
                }
            }
            Err(fault) => encoded.refusal = Some(UnitRefusal::Fault(fault)),
        }
        for (key, expected) in compare.into_iter().flatten() {
            match RecordTable::of(key.kind()) {
                Some(table) => encoded.check(table, key, expected),
                // There are no foreign runs in this store.
                None if expected.is_none() => {}
                None => encoded.refusal = encoded.refusal.or(Some(UnitRefusal::Conflict(key))),
            }
        }
        encoded
    }

    /// The records and locks that the unit changes.
    pub(crate) fn keys(&self) -> impl Iterator<Item = RecordKey> {
        let locks = self.free.iter().map(|free| &free.lock).chain(self.take.iter().map(|take| &take.lock));
        self.writes.iter().map(|write| write.key.clone()).chain(locks.cloned().map(RecordKey::Lock))
    }

    fn write(&mut self, table: RecordTable, key: RecordKey, change: RecordChange, expected: Option<RecordVersion>) {
        let (kind, mut cells) = match (change, expected) {
            (RecordChange::Put(record), None) => (WriteKind::Insert, rows::write(&record, self.version)),
            (RecordChange::Put(record), Some(_)) => (WriteKind::Update, rows::write(&record, self.version)),
            (RecordChange::Delete(_), Some(_)) => (WriteKind::Delete, rows::key_cells(&key)),
            // There is nothing to delete, but the record must still not exist.
            (RecordChange::Delete(_), None) => return self.check(table, key, None),
        };
        cells.extend(expected.map(version_value));
        self.writes.push(RowWrite { key, table, kind, cells });
    }

    fn check(&mut self, table: RecordTable, key: RecordKey, expected: Option<RecordVersion>) {
        self.checks.push(VersionCheck { cells: rows::key_cells(&key), key, table, expected });
    }
}

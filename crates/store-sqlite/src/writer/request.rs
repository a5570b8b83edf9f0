//! What the writer is asked, with everything encoded by whoever asks, so that the one thread that writes only binds and
//! steps.

use std::collections::BTreeMap;

use cronhold_core::RunId;
use cronhold_core::decision::{Change, Free, Take};
use cronhold_core::record::{Key, Kind, LockName, Node, Version};
use cronhold_store::{Committed, Fault, Refusal, Unit, Writer};
use rusqlite::types::Value;

use super::reply::Answer;
use crate::hints::HandleId;
use crate::rows::{self, Table, version_value};

/// One thing that the writer is asked.
#[derive(Debug)]
pub(crate) enum Request {
    /// Do units.
    Commit { orders: Vec<Order>, by: HandleId, ticket: Ticket<Settled> },
    /// A number for a new writer.
    Enroll { ticket: Ticket<Result<Writer, Fault>> },
    /// A node is alive and its locks are renewed.
    Beat { node: Node, locks: Vec<(LockName, RunId)>, by: HandleId, ticket: Ticket<Result<Vec<LockName>, Fault>> },
    /// Output of a run.
    Append { run: RunId, from: u64, bytes: Vec<u8>, ticket: Ticket<Result<u64, Fault>> },
    /// Outputs are not kept any longer.
    DropOutputs { runs: Vec<RunId>, ticket: Ticket<Result<(), Fault>> },
}

/// What came of units, and the units themselves: they are many small pieces of memory, and the writer has better things
/// to do than to free them.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) results: Vec<Result<Committed, Refusal>>,
    pub(crate) orders: Vec<Order>,
}

/// An answer that is kept until it is durable.
#[derive(Debug)]
pub(crate) struct Ticket<T> {
    pub(crate) result: Option<T>,
    pub(crate) answer: Answer<T>,
}

/// A unit, ready to be written.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) version: Version,
    /// What is only compared.
    pub(crate) checks: Vec<Check>,
    pub(crate) writes: Vec<Write>,
    pub(crate) take: Vec<Take>,
    pub(crate) free: Vec<Free>,
    /// Why it cannot be done at all, when it cannot.
    pub(crate) refusal: Option<Refusal>,
}

/// A record that must have a version.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) key: Key,
    pub(crate) table: Table,
    pub(crate) cells: Vec<Value>,
    pub(crate) expected: Option<Version>,
}

/// A record that is written if it has a version.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) key: Key,
    pub(crate) table: Table,
    /// Which statement does it.
    pub(crate) how: How,
    /// The parameters of that statement.
    pub(crate) cells: Vec<Value>,
}

/// How a record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Insert,
    Update,
    Delete,
}

impl Request {
    /// How much work it is.
    pub(crate) fn units(&self) -> usize {
        match self {
            Self::Commit { orders, .. } => orders.len().max(1),
            Self::DropOutputs { runs, .. } => runs.len().max(1),
            Self::Enroll { .. } | Self::Beat { .. } | Self::Append { .. } => 1,
        }
    }

    /// Answers with what it came to, which is durable now.
    pub(crate) fn settle(self) {
        match self {
            Self::Commit { orders, ticket: Ticket { result, answer }, .. } => {
                if let Some(settled) = result {
                    answer.give(Settled { orders, ..settled });
                }
            }
            Self::Enroll { ticket } => ticket.settle(),
            Self::Beat { ticket, .. } => ticket.settle(),
            Self::Append { ticket, .. } => ticket.settle(),
            Self::DropOutputs { ticket, .. } => ticket.settle(),
        }
    }

    /// Answers that the store failed. Refusals count no more either: what they rest on is undone too.
    pub(crate) fn fail(self, fault: &Fault) {
        match self {
            Self::Commit { orders, ticket, .. } => {
                let results = orders.iter().map(|_| Err(Refusal::Fault(fault.clone()))).collect();
                ticket.answer.give(Settled { results, orders });
            }
            Self::Enroll { ticket } => ticket.answer.give(Err(fault.clone())),
            Self::Beat { ticket, .. } => ticket.answer.give(Err(fault.clone())),
            Self::Append { ticket, .. } => ticket.answer.give(Err(fault.clone())),
            Self::DropOutputs { ticket, .. } => ticket.answer.give(Err(fault.clone())),
        }
    }
}

impl<T> Ticket<T> {
    pub(crate) fn new(answer: Answer<T>) -> Self {
        Self { result: None, answer }
    }

    fn settle(self) {
        if let Some(result) = self.result {
            self.answer.give(result);
        }
    }
}

impl Order {
    /// Makes a unit ready.
    pub(crate) fn new(unit: Unit) -> Self {
        let Unit { version, compare, changes, take, free } = unit;
        let mut order = Self { version, checks: Vec::new(), writes: Vec::new(), take, free, refusal: None };
        let mut compare: BTreeMap<Key, Option<Version>> = compare.into_iter().collect();
        for change in changes {
            let key = change.key();
            match (Table::of(key.kind()), compare.remove(&key)) {
                (Some(table), Some(expected)) => order.write(table, key, change, expected),
                _ => order.refuse(&format!("changes {key} without comparing it")),
            }
        }
        for (key, expected) in compare {
            match Table::of(key.kind()) {
                Some(table) => order.check(table, key, expected),
                // Nobody else runs anything here.
                None if key.kind() == Kind::Foreign && expected.is_none() => {}
                None => order.refuse(&format!("compares {key}")),
            }
        }
        order
    }

    /// The records that it changes.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        let locks = self.free.iter().map(|free| &free.lock).chain(self.take.iter().map(|take| &take.lock));
        self.writes.iter().map(|write| write.key.clone()).chain(locks.cloned().map(Key::Lock))
    }

    fn write(&mut self, table: Table, key: Key, change: Change, expected: Option<Version>) {
        let (how, mut cells) = match (change, expected) {
            (Change::Put(record), None) => (How::Insert, rows::write(&record, self.version)),
            (Change::Put(record), Some(_)) => (How::Update, rows::write(&record, self.version)),
            (Change::Delete(_), Some(_)) => (How::Delete, rows::key_cells(&key)),
            // Nothing is there that could be deleted; that it is so is still compared.
            (Change::Delete(_), None) => return self.check(table, key, None),
        };
        cells.extend(expected.map(version_value));
        self.writes.push(Write { key, table, how, cells });
    }

    fn check(&mut self, table: Table, key: Key, expected: Option<Version>) {
        self.checks.push(Check { cells: rows::key_cells(&key), key, table, expected });
    }

    fn refuse(&mut self, what: &str) {
        self.refusal = Some(Refusal::Fault(Fault::Broken(format!("a unit {what}"))));
    }
}

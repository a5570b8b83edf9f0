//! Many requests in one transaction. Units share only the journey: one that is refused or cannot be done leaves the
//! others as they are.
//!
//! The first attempt is bold: units are written without a savepoint, each statement comparing the version of what it
//! replaces. A unit that finds out in the middle that it must not happen has written something by then; so the whole
//! attempt is undone and made again with a savepoint for each unit. Conflicts are rare on a store with one node, and
//! savepoints nearly double what a unit costs (`cargo bench -p cronhold-store-sqlite` measures it).

use cronhold_core::record::{Key, Node, Record, Version};
use cronhold_schedule::Instant;
use cronhold_store::{Committed, Fault, Refusal, Writer};

use super::request::{How, Order, Request, Settled, Write};
use super::statements::Statements;
use crate::faults;
use crate::rows::{self, Table, version_value};

/// Numbers of writers are below this, because versions have so many bits for them.
const WRITERS_MAX: u64 = 1 << 23;

/// Numbers of units are below this, for the same reason.
const UNITS_MAX: u64 = 1 << 40;

/// The writer of records that no unit writes: the store itself.
const STORE: u32 = 0;

/// Whether a unit can be undone by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// It cannot.
    Bold,
    /// It can: it has a savepoint.
    Careful,
}

/// Why an attempt was broken off.
#[derive(Debug)]
pub(super) enum Setback {
    /// A unit has written something and must not happen.
    Torn(Refusal),
    /// SQLite failed.
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for Setback {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// Does requests within the transaction that is open, and puts their answers into their tickets.
pub(super) fn attempt(
    statements: &mut Statements<'_>,
    requests: &mut [Request],
    now: Instant,
    care: Care,
) -> Result<(), Setback> {
    for request in requests {
        match request {
            Request::Commit { orders, ticket, .. } => {
                let mut results = Vec::with_capacity(orders.len());
                for order in orders {
                    results.push(guarded(statements, care, |statements| unit(statements, order, now))?);
                }
                ticket.result = Some(Settled { results, orders: Vec::new() });
            }
            Request::Enroll { ticket } => {
                let number = statements.next_number("writers", WRITERS_MAX)?;
                let number = number.and_then(|number| u32::try_from(number).ok());
                let spent = || Fault::Broken(format!("{WRITERS_MAX} writers have enrolled; there are no more numbers"));
                ticket.result = Some(number.map(Writer).ok_or_else(spent));
            }
            Request::Beat { node, locks, ticket, .. } => {
                beat(statements, node)?;
                let mut lost = Vec::new();
                for (name, holder) in locks {
                    if !statements.locks.renew(name, *holder, now)? {
                        lost.push(name.clone());
                    }
                }
                ticket.result = Some(Ok(lost));
            }
            Request::Append { run, from, bytes, ticket } => {
                ticket.result = Some(statements.outputs.append(*run, *from, bytes)?);
            }
            Request::DropOutputs { runs, ticket } => {
                for run in runs {
                    statements.outputs.delete(*run)?;
                }
                ticket.result = Some(Ok(()));
            }
        }
    }
    Ok(())
}

/// Does something that concerns one unit alone, so that it harms no other when it fails.
fn guarded(
    statements: &mut Statements<'_>,
    care: Care,
    work: impl FnOnce(&mut Statements<'_>) -> Result<Result<Committed, Refusal>, Setback>,
) -> Result<Result<Committed, Refusal>, Setback> {
    if care == Care::Bold {
        return work(statements);
    }
    statements.save()?;
    let (result, keep) = match work(statements) {
        Ok(result) => (result, true),
        Err(Setback::Torn(refusal)) => (Err(refusal), false),
        Err(Setback::Sql(error)) if faults::is_of_one_unit(&error) => {
            (Err(Fault::Broken(format!("a unit cannot be stored: {error}")).into()), false)
        }
        Err(setback) => return Err(setback),
    };
    statements.release(keep)?;
    Ok(result)
}

/// Does a unit. Whatever can be looked at beforehand is, so that a refusal seldom comes after a write.
fn unit(statements: &mut Statements<'_>, order: &Order, now: Instant) -> Result<Result<Committed, Refusal>, Setback> {
    if let Some(refusal) = &order.refusal {
        return Ok(Err(refusal.clone()));
    }
    for check in &order.checks {
        if !statements.holds(check)? {
            return Ok(Err(Refusal::Conflict(check.key.clone())));
        }
    }
    for take in &order.take {
        if let Some(refusal) = statements.locks.refusal(take, &order.free, now)? {
            return Ok(Err(refusal));
        }
    }
    for (index, write) in order.writes.iter().enumerate() {
        if !statements.write(write)? {
            let refusal = Refusal::Conflict(write.key.clone());
            return if index == 0 { Ok(Err(refusal)) } else { Err(Setback::Torn(refusal)) };
        }
        if let (How::Delete, Key::Run(run)) = (write.how, &write.key) {
            statements.outputs.delete(*run)?;
        }
    }
    for free in &order.free {
        statements.locks.free(free)?;
    }
    let mut fences = Vec::with_capacity(order.take.len());
    for take in &order.take {
        fences.push((take.lock.clone(), statements.locks.take(take, order.version, now)?));
    }
    Ok(Ok(Committed { fences }))
}

/// Writes a node, whatever is there. That it drains is for others to say.
fn beat(statements: &mut Statements<'_>, node: &Node) -> rusqlite::Result<()> {
    // There is a beat every two seconds: the numbers last for longer than the machine.
    let number = statements.next_number("beats", UNITS_MAX)?.unwrap_or(0);
    let version = Version::new(STORE, number);
    let key = Key::Node(node.id);
    let draining = statements.is_draining(node)?.unwrap_or(node.draining);
    let node = Node { draining, ..node.clone() };
    let mut cells = rows::write(&Record::Node(node.into()), version);
    let insert = Write { key: key.clone(), table: Table::Nodes, how: How::Insert, cells: cells.clone() };
    if statements.write(&insert)? {
        return Ok(());
    }
    if let Some(found) = statements.version(Table::Nodes, &rows::key_cells(&key))? {
        cells.push(version_value(found));
        statements.write(&Write { key, table: Table::Nodes, how: How::Update, cells })?;
    }
    Ok(())
}

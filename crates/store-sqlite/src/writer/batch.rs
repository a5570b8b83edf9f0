//! Executes many requests in one transaction. Units are independent: one that is refused or fails does not affect the
//! others.
//!
//! The first attempt is optimistic: it uses no savepoints, and each statement compares the version of what it replaces.
//! If a unit finds a conflict after its first write, the whole attempt is rolled back and repeated with a savepoint for
//! each unit. Conflicts are rare on a store with one node, and savepoints nearly double the cost of a unit (`cargo
//! bench -p cronhold-store-sqlite` measures it).

use cronhold_core::record::{NodeRecord, Record, RecordKey, RecordVersion};
use cronhold_schedule::Instant;
use cronhold_store::{Fault, UnitReceipt, UnitRefusal, WriterId};

use super::request::{CommitResults, EncodedUnit, RowWrite, WriteKind, WriterRequest};
use super::statements::Statements;
use crate::faults;
use crate::rows::{self, RecordTable, version_value};

/// Writer numbers are below this. Each start of a daemon takes one.
const WRITERS_MAX: u64 = RecordVersion::WRITERS as u64;

/// Unit numbers are below this, because a version has 40 bits for them.
const UNITS_MAX: u64 = 1 << 40;

/// The writer number of the store itself, for records that are not written by a unit.
const STORE_WRITER: u32 = 0;

/// Whether a unit can be rolled back by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitMode {
    /// Without savepoints; a conflict rolls back the whole transaction.
    Optimistic,
    /// With a savepoint for each unit.
    WithSavepoints,
}

/// Why an attempt was aborted.
#[derive(Debug)]
pub(super) enum AttemptError {
    /// A unit was refused after it had written something.
    PartialUnit(UnitRefusal),
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for AttemptError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// Executes requests within the open transaction, and stores their results in their pending replies.
pub(super) fn attempt(
    statements: &mut Statements<'_>,
    requests: &mut [WriterRequest],
    now: Instant,
    mode: CommitMode,
) -> Result<(), AttemptError> {
    for request in requests {
        match request {
            WriterRequest::Commit { units, reply, .. } => {
                let mut results = Vec::with_capacity(units.len());
                for unit in units {
                    results.push(isolated(statements, mode, |statements| execute(statements, unit, now))?);
                }
                reply.result = Some(CommitResults { results, units: Vec::new() });
            }
            // The units of the first are in a `Commit` by now, and the others write nothing.
            WriterRequest::CommitAhead { .. } | WriterRequest::Execute { .. } | WriterRequest::Discard { .. } => {}
            WriterRequest::Enroll { reply } => {
                let number = statements.next_number("writers", WRITERS_MAX)?;
                let number = number.and_then(|number| u32::try_from(number).ok());
                let spent = || Fault::Permanent(format!("all {WRITERS_MAX} writer numbers are in use"));
                reply.result = Some(number.map(WriterId).ok_or_else(spent));
            }
            WriterRequest::Heartbeat { node, locks, reply, .. } => {
                write_node(statements, node)?;
                let mut lost = Vec::new();
                for (name, holder) in locks {
                    if !statements.locks.renew(name, *holder, now)? {
                        lost.push((name.clone(), *holder));
                    }
                }
                reply.result = Some(Ok(lost));
            }
            WriterRequest::Append { run, from, bytes, reply } => {
                reply.result = Some(match statements.seal.fault()? {
                    Some(fault) => Err(fault),
                    None => statements.outputs.append(*run, *from, bytes)?,
                });
            }
            WriterRequest::DropOutputs { runs, reply } => {
                reply.result = Some(statements.seal.fault()?.map_or(Ok(()), Err));
                if matches!(reply.result, Some(Ok(()))) {
                    runs.iter().try_for_each(|run| statements.outputs.delete(*run))?;
                }
            }
            WriterRequest::Tasks(work) => work.execute(statements.connection(), now)?,
            WriterRequest::ExpireLocks { before, reply } => {
                reply.result = Some(statements.seal.fault()?.map_or(Ok(()), Err));
                if matches!(reply.result, Some(Ok(()))) {
                    statements.locks.expire(*before, now)?;
                }
            }
            WriterRequest::Seal { reason, reply } => {
                statements.seal.set(reason.as_deref())?;
                reply.result = Some(Ok(()));
            }
        }
    }
    Ok(())
}

/// Executes one unit so that its failure does not affect the others.
fn isolated(
    statements: &mut Statements<'_>,
    mode: CommitMode,
    work: impl FnOnce(&mut Statements<'_>) -> Result<Result<UnitReceipt, UnitRefusal>, AttemptError>,
) -> Result<Result<UnitReceipt, UnitRefusal>, AttemptError> {
    if mode == CommitMode::Optimistic {
        return work(statements);
    }
    statements.save()?;
    let (result, keep) = match work(statements) {
        Ok(result) => (result, true),
        Err(AttemptError::PartialUnit(refusal)) => (Err(refusal), false),
        Err(AttemptError::Sql(error)) if faults::is_of_one_unit(&error) => {
            (Err(Fault::Permanent(format!("cannot store a unit: {error}")).into()), false)
        }
        Err(error) => return Err(error),
    };
    statements.release(keep)?;
    Ok(result)
}

/// Executes a unit. Checks come first, so that a refusal rarely follows a write.
pub(super) fn execute(
    statements: &mut Statements<'_>,
    unit: &EncodedUnit,
    now: Instant,
) -> Result<Result<UnitReceipt, UnitRefusal>, AttemptError> {
    if let Some(refusal) = &unit.refusal {
        return Ok(Err(refusal.clone()));
    }
    if let Some(fault) = statements.seal.fault()? {
        return Ok(Err(fault.into()));
    }
    for check in &unit.checks {
        if !statements.holds(check)? {
            return Ok(Err(UnitRefusal::Conflict(check.key.clone())));
        }
    }
    for take in &unit.take {
        if let Some(refusal) = statements.locks.refusal(take, &unit.free, now)? {
            return Ok(Err(refusal));
        }
    }
    for (index, write) in unit.writes.iter().enumerate() {
        if !statements.write(write)? {
            let refusal = UnitRefusal::Conflict(write.key.clone());
            return if index == 0 { Ok(Err(refusal)) } else { Err(AttemptError::PartialUnit(refusal)) };
        }
        if let (WriteKind::Delete, RecordKey::Run(run)) = (write.kind, &write.key) {
            statements.outputs.delete(*run)?;
        }
    }
    for free in &unit.free {
        statements.locks.free(free)?;
    }
    let mut fences = Vec::with_capacity(unit.take.len());
    for take in &unit.take {
        fences.push((take.lock.clone(), statements.locks.take(take, unit.version, now)?));
    }
    Ok(Ok(UnitReceipt { fences }))
}

/// Writes a node unconditionally, but keeps its stored drain flag, which commands set.
fn write_node(statements: &mut Statements<'_>, node: &NodeRecord) -> rusqlite::Result<()> {
    // With a heartbeat every two seconds, the numbers last longer than the hardware.
    let number = statements.next_number("beats", UNITS_MAX)?.unwrap_or(0);
    let version = RecordVersion::new(STORE_WRITER, number);
    let key = RecordKey::Node(node.id);
    let draining = statements.is_draining(node)?.unwrap_or(node.draining);
    let node = NodeRecord { draining, ..node.clone() };
    let mut cells = rows::write(&Record::Node(node.into()), version);
    let insert =
        RowWrite { key: key.clone(), table: RecordTable::Nodes, kind: WriteKind::Insert, cells: cells.clone() };
    if statements.write(&insert)? {
        return Ok(());
    }
    if let Some(found) = statements.version(RecordTable::Nodes, &rows::key_cells(&key))? {
        cells.push(version_value(found));
        statements.write(&RowWrite { key, table: RecordTable::Nodes, kind: WriteKind::Update, cells })?;
    }
    Ok(())
}

//! Actions: a column for everything that users query, and JSON for what is delivered.

use std::sync::Arc;

use cronhold_core::job::{ActionKind, RunEvent};
use cronhold_core::record::{ActionId, ActionRecord, ActionStatus, Record, RunOwner};
use cronhold_core::{JobId, NodeId};
use cronhold_schedule::Instant;

use super::cells::{CellReader, RowCells, UnreadableRow};
use super::table::TableLayout;

pub(super) const LAYOUT: TableLayout = TableLayout {
    name: "actions",
    key: &["id"],
    rest: &[
        "job",
        "event",
        "kind",
        "status",
        "due",
        "node",
        "incarnation",
        "ended",
        "created",
        "attempts",
        "failures",
        "error",
        "work",
    ],
    fixed: &[],
};

pub(super) fn write(cells: &mut RowCells, action: &ActionRecord) {
    cells.text(action.job.as_str());
    cells.text(action.event.name());
    cells.text(action.work.kind().name());
    cells.text(action.status.name());
    cells.option(action.due(), RowCells::instant);
    cells.option(action.owner(), |cells, owner| cells.display(&owner.node));
    cells.option(action.owner(), |cells, owner| cells.integer(owner.incarnation));
    let ended = match action.status {
        ActionStatus::Pending { .. } => None,
        ActionStatus::Done { at } | ActionStatus::Failed { at } => Some(at),
    };
    cells.option(ended, RowCells::instant);
    cells.instant(action.created);
    cells.integer(action.attempts);
    cells.integer(action.failures);
    cells.option(action.error.as_deref(), RowCells::text);
    cells.json(&action.work);
}

pub(super) fn read(id: ActionId, reading: &CellReader<'_>) -> Result<Record, UnreadableRow> {
    let job = reading.parsed(JobId::parse)?;
    let event = reading.parsed(RunEvent::parse)?;
    // The column `kind` follows from the JSON.
    reading.parsed(ActionKind::parse)?;
    let status = read_status(reading)?;
    let action = ActionRecord {
        id,
        job,
        event,
        status,
        created: reading.instant()?,
        attempts: reading.integer()?,
        failures: reading.integer()?,
        error: reading.option_text()?.map(str::to_owned),
        work: reading.json()?,
    };
    Ok(Record::Action(Arc::new(action)))
}

fn read_status(reading: &CellReader<'_>) -> Result<ActionStatus, UnreadableRow> {
    let name = reading.text()?;
    let due = reading.option_instant()?;
    let (node, incarnation) = (reading.option_parsed(NodeId::parse)?, reading.option_integer()?);
    let owner = node.zip(incarnation).map(|(node, incarnation)| RunOwner { node, incarnation });
    let ended: Option<Instant> = reading.option_instant()?;
    let status = match (name, due, ended) {
        ("pending", Some(due), _) => Some(ActionStatus::Pending { due, owner }),
        ("done", _, Some(at)) => Some(ActionStatus::Done { at }),
        ("failed", _, Some(at)) => Some(ActionStatus::Failed { at }),
        _ => None,
    };
    status.ok_or_else(|| reading.wrong("the status and its time do not match"))
}

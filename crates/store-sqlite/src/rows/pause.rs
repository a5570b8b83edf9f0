//! The global pause, and the columns of a pause in any table.

use std::sync::Arc;

use cronhold_core::record::{ActivePause, Actor, PauseState, Record};

use super::cells::{CellReader, RowCells, UnreadableRow};
use super::table::TableLayout;

pub(super) const LAYOUT: TableLayout = TableLayout {
    name: "pause",
    key: &["id"],
    rest: &["since", "by", "why", "last_from", "last_to", "until"],
    fixed: &[],
};

/// The key of the only row.
pub(super) const ONLY: i64 = 1;

pub(super) fn write(cells: &mut RowCells, pauses: &PauseState) {
    let current = pauses.current.as_ref();
    cells.option(current, |cells, pause| cells.instant(pause.since));
    cells.option(current, |cells, pause| cells.display(&pause.by));
    cells.option(current, |cells, pause| cells.text(&pause.why));
    cells.option(pauses.last, |cells, (from, _)| cells.instant(from));
    cells.option(pauses.last, |cells, (_, to)| cells.instant(to));
    cells.option(current.and_then(|pause| pause.until), RowCells::instant);
}

pub(super) fn read(reading: &CellReader<'_>) -> Result<PauseState, UnreadableRow> {
    let (since, by) = (reading.option_instant()?, reading.option_parsed(Actor::parse)?);
    let why = reading.option_text()?.unwrap_or_default().to_owned();
    let (from, to) = (reading.option_instant()?, reading.option_instant()?);
    let until = reading.option_instant()?;
    let current = since.zip(by).map(|(since, by)| ActivePause { since, by, why, until });
    Ok(PauseState { current, last: from.zip(to) })
}

pub(super) fn read_record(reading: &CellReader<'_>) -> Result<Record, UnreadableRow> {
    Ok(Record::Pause(Arc::new(read(reading)?)))
}

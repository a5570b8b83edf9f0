//! Backlogs: occurrences that were missed and not decided yet.

use std::sync::Arc;

use cronhold_core::JobId;
use cronhold_core::record::{Backlog, Record, ScheduleId};

use super::cells::{CellReader, RowCells, UnreadableRow};
use super::table::TableLayout;

pub(super) const LAYOUT: TableLayout = TableLayout {
    name: "backlogs",
    key: &["job", "schedule"],
    rest: &["first", "position", "last", "count", "due", "later"],
    fixed: &[],
};

pub(super) fn write(cells: &mut RowCells, backlog: &Backlog) {
    cells.instant(backlog.from);
    cells.instant(backlog.position);
    cells.instant(backlog.to);
    cells.integer(backlog.count);
    cells.instant(backlog.due);
    cells.json(&backlog.later);
}

pub(super) fn read(job: JobId, schedule: ScheduleId, reading: &CellReader<'_>) -> Result<Record, UnreadableRow> {
    let backlog = Backlog {
        job,
        schedule,
        from: reading.instant()?,
        position: reading.instant()?,
        to: reading.instant()?,
        count: reading.integer()?,
        due: reading.instant()?,
        later: reading.json()?,
    };
    Ok(Record::Backlog(Arc::new(backlog)))
}

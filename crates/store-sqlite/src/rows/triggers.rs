//! Pending triggers of a job: a column for everything that users count, and JSON for the triggers themselves.

use std::sync::Arc;

use cronhold_core::JobId;
use cronhold_core::record::{Record, TriggerCounts, TriggerSet};

use super::cells::{CellReader, RowCells, UnreadableRow};
use super::table::TableLayout;

pub(super) const LAYOUT: TableLayout = TableLayout {
    name: "triggers",
    key: &["job"],
    rest: &["due", "received", "consumed", "expired", "removed", "pending", "decisions"],
    fixed: &[],
};

pub(super) fn write(cells: &mut RowCells, set: &TriggerSet) {
    let TriggerCounts { received, consumed, expired, removed } = set.counts;
    cells.option(set.due, RowCells::instant);
    [received, consumed, expired, removed].into_iter().for_each(|count| cells.count(count));
    cells.json(&set.pending);
    cells.json(&set.decisions);
}

pub(super) fn read(job: JobId, reading: &CellReader<'_>) -> Result<Record, UnreadableRow> {
    let set = TriggerSet {
        job,
        due: reading.option_instant()?,
        counts: TriggerCounts {
            received: reading.integer()?,
            consumed: reading.integer()?,
            expired: reading.integer()?,
            removed: reading.integer()?,
        },
        pending: reading.json()?,
        decisions: reading.json()?,
    };
    Ok(Record::Triggers(Arc::new(set)))
}

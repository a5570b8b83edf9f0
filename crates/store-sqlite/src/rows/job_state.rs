//! Job states.

use std::sync::Arc;

use cronhold_core::JobId;
use cronhold_core::record::{JobState, KeptCounts, Record};

use super::cells::{CellReader, RowCells, UnreadableRow};
use super::pause;
use super::table::TableLayout;

pub(super) const LAYOUT: TableLayout = TableLayout {
    name: "job_states",
    key: &["job"],
    rest: &[
        "next_number",
        "active",
        "queue",
        "paused_since",
        "paused_by",
        "paused_why",
        "last_paused_from",
        "last_paused_to",
        "kept_success",
        "kept_failure",
        "kept_error",
        "kept_skipped",
        "floor",
    ],
    fixed: &[],
};

pub(super) fn write(cells: &mut RowCells, state: &JobState) {
    cells.count(state.next_number);
    cells.json(&state.active);
    cells.json(&state.queue);
    pause::write(cells, &state.pauses);
    cells.integer(state.kept.success);
    cells.integer(state.kept.failure);
    cells.integer(state.kept.error);
    cells.integer(state.kept.skipped);
    cells.option(state.floor, RowCells::instant);
}

pub(super) fn read(job: JobId, reading: &CellReader<'_>) -> Result<Record, UnreadableRow> {
    let state = JobState {
        job,
        next_number: reading.integer()?,
        active: reading.json()?,
        queue: reading.json()?,
        pauses: pause::read(reading)?,
        kept: KeptCounts {
            success: reading.integer()?,
            failure: reading.integer()?,
            error: reading.integer()?,
            skipped: reading.integer()?,
        },
        floor: reading.option_instant()?,
    };
    Ok(Record::JobState(Arc::new(state)))
}

//! Job states.

use std::sync::Arc;

use cronhold_core::record::{JobState, KeptCounts, LatestRun, Record};
use cronhold_core::{JobId, RunId};

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
        "paused_until",
        "kept_success",
        "kept_failure",
        "kept_error",
        "kept_skipped",
        "floor",
        "removed",
        "latest_run",
        "latest_at",
        "outcomes",
        "has_triggers",
        "renaming",
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
    cells.option(state.removed, RowCells::instant);
    cells.option(state.latest, |cells, latest| cells.display(&latest.run));
    cells.option(state.latest, |cells, latest| cells.instant(latest.at));
    cells.option(state.outcomes.as_ref(), RowCells::json);
    cells.integer(state.has_triggers);
    cells.option(state.renaming.as_ref(), RowCells::json);
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
        removed: reading.option_instant()?,
        latest: read_latest(reading)?,
        outcomes: reading.option_json()?,
        has_triggers: reading.flag()?,
        renaming: reading.option_json()?,
    };
    Ok(Record::JobState(Arc::new(state)))
}

fn read_latest(reading: &CellReader<'_>) -> Result<Option<LatestRun>, UnreadableRow> {
    let (run, at) = (reading.option_parsed(RunId::parse)?, reading.option_instant()?);
    Ok(run.zip(at).map(|(run, at)| LatestRun { run, at }))
}

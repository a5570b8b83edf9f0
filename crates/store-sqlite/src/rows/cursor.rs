//! Cursors.

use std::sync::Arc;

use cronhold_core::record::{ClaimedRanges, Cursor, Record, ScheduleId, SkipStreak};
use cronhold_core::run::Reason;
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Instant;

use super::cells::{CellReader, RowCells, UnreadableRow};
use super::table::TableLayout;

pub(super) const LAYOUT: TableLayout = TableLayout {
    name: "cursors",
    key: &["job", "schedule"],
    rest: &[
        "since",
        "last",
        "next",
        "wake",
        "revision",
        "zones",
        "generation",
        "follows",
        "at_start",
        "skip_reason",
        "skip_count",
        "skip_span",
        "claimed",
        "wake_minute",
    ],
    fixed: &["wake_minute"],
};

/// The minute of a time, as the index of due cursors has it.
pub(crate) fn minute(at: Instant) -> i64 {
    at.micros() / MICROS_PER_MINUTE
}

const MICROS_PER_MINUTE: i64 = 60_000_000;

pub(super) fn write(cells: &mut RowCells, cursor: &Cursor) {
    cells.instant(cursor.since);
    cells.option(cursor.last, RowCells::instant);
    cells.option(cursor.next, RowCells::instant);
    cells.option(cursor.wake, RowCells::instant);
    cells.integer(cursor.revision);
    cells.text(&cursor.zones);
    cells.integer(cursor.generation);
    cells.option(cursor.follows, |cells, run| cells.display(&run));
    cells.integer(cursor.at_start);
    let streak = cursor.streak.as_ref();
    cells.option(streak, |cells, streak| cells.display(&streak.reason));
    cells.option(streak, |cells, streak| cells.integer(streak.count));
    cells.option(streak.and_then(|streak| streak.span), |cells, run| cells.display(&run));
    cells.display(&cursor.claimed);
    cells.option(cursor.wake, |cells, wake| cells.integer(minute(wake)));
}

pub(super) fn read(job: JobId, schedule: ScheduleId, reading: &CellReader<'_>) -> Result<Record, UnreadableRow> {
    let cursor = Cursor {
        job,
        schedule,
        since: reading.instant()?,
        last: reading.option_instant()?,
        next: reading.option_instant()?,
        wake: reading.option_instant()?,
        revision: reading.integer()?,
        zones: reading.text()?.into(),
        generation: reading.integer()?,
        follows: reading.option_parsed(RunId::parse)?,
        at_start: reading.flag()?,
        streak: read_streak(reading)?,
        claimed: reading.parsed(ClaimedRanges::parse)?,
    };
    // The column `wake_minute` follows from `wake`.
    reading.option_integer::<i64>()?;
    Ok(Record::Cursor(Arc::new(cursor)))
}

fn read_streak(reading: &CellReader<'_>) -> Result<Option<SkipStreak>, UnreadableRow> {
    let reason = reading.option_parsed(Reason::parse)?;
    let count = reading.option_integer()?;
    let span = reading.option_parsed(RunId::parse)?;
    Ok(reason.zip(count).map(|(reason, count)| SkipStreak { reason, count, span }))
}

//! Cursors. The position is in the first line, because after a rollback a store keeps the later one of
//! two cursors.

use std::borrow::Cow;
use std::sync::Arc;

use cronhold_core::record::{ClaimedRanges, Cursor, Record, ScheduleId, SkipStreak};
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use crate::UnreadableText;
use crate::head::{RecordBody, TextReader};

#[derive(Serialize, Deserialize)]
struct CursorJson<'a> {
    since: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<i64>,
    #[serde(default, skip_serializing_if = "is_empty")]
    claimed: Cow<'a, ClaimedRanges>,
    revision: u32,
    zones: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "is_zero")]
    generation: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    follows: Option<RunId>,
    #[serde(default, skip_serializing_if = "is_false")]
    at_start: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    streak: Option<Cow<'a, SkipStreak>>,
}

pub(super) fn write(body: &mut RecordBody, cursor: &Cursor) {
    body.moment(cursor.last);
    body.json(&CursorJson {
        since: cursor.since.micros(),
        next: cursor.next.map(Instant::micros),
        claimed: Cow::Borrowed(&cursor.claimed),
        revision: cursor.revision,
        zones: Cow::Borrowed(&cursor.zones),
        generation: cursor.generation,
        follows: cursor.follows,
        at_start: cursor.at_start,
        streak: cursor.streak.as_ref().map(Cow::Borrowed),
    });
}

pub(super) fn read(job: JobId, schedule: ScheduleId, reading: &TextReader<'_>) -> Result<Record, UnreadableText> {
    let last = reading.moment()?;
    let form: CursorJson<'static> = reading.json()?;
    Ok(Record::Cursor(Arc::new(Cursor {
        job,
        schedule,
        since: Instant::from_micros(form.since),
        last,
        claimed: form.claimed.into_owned(),
        next: form.next.map(Instant::from_micros),
        wake: reading.due()?,
        revision: form.revision,
        zones: form.zones.as_ref().into(),
        generation: form.generation,
        follows: form.follows,
        at_start: form.at_start,
        streak: form.streak.map(Cow::into_owned),
    })))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_empty(ranges: &ClaimedRanges) -> bool {
    ranges.is_empty()
}

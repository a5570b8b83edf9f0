//! Job states. Every run writes one twice, so the encoding is short.

use std::borrow::Cow;
use std::sync::Arc;

use cronhold_core::record::{
    ActiveRun, JobState, KeptCounts, LatestOutcomes, LatestRun, PauseState, QueuedRun, Record, RenameProgress,
};
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use crate::UnreadableText;
use crate::head::{RecordBody, TextReader};
use crate::identity::OutcomesJson;

#[derive(Serialize, Deserialize)]
struct JobStateJson<'a> {
    next: u64,
    #[serde(default, skip_serializing_if = "is_empty")]
    active: Cow<'a, [ActiveRun]>,
    #[serde(default, skip_serializing_if = "is_empty")]
    queue: Cow<'a, [QueuedRun]>,
    #[serde(default, skip_serializing_if = "never_paused")]
    pauses: Cow<'a, PauseState>,
    /// By state: success, failure, error, skipped.
    kept: [u32; 4],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    floor: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    removed: Option<i64>,
    /// The run that started last among the ended ones, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latest: Option<(RunId, i64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcomes: Option<OutcomesJson>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    triggers: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renaming: Option<Cow<'a, RenameProgress>>,
}

pub(super) fn write(body: &mut RecordBody, state: &JobState) {
    let KeptCounts { success, failure, error, skipped } = state.kept;
    body.json(&JobStateJson {
        next: state.next_number,
        active: Cow::Borrowed(&state.active),
        queue: Cow::Borrowed(&state.queue),
        pauses: Cow::Borrowed(&state.pauses),
        kept: [success, failure, error, skipped],
        floor: state.floor.map(Instant::micros),
        removed: state.removed.map(Instant::micros),
        latest: state.latest.map(|latest| (latest.run, latest.at.micros())),
        outcomes: state.outcomes.map(OutcomesJson::from),
        triggers: state.has_triggers,
        renaming: state.renaming.as_ref().map(Cow::Borrowed),
    });
}

pub(super) fn read(job: JobId, reading: &TextReader<'_>) -> Result<Record, UnreadableText> {
    let form: JobStateJson<'static> = reading.json()?;
    let [success, failure, error, skipped] = form.kept;
    Ok(Record::JobState(Arc::new(JobState {
        job,
        next_number: form.next,
        active: form.active.into_owned(),
        queue: form.queue.into_owned(),
        pauses: form.pauses.into_owned(),
        kept: KeptCounts { success, failure, error, skipped },
        floor: form.floor.map(Instant::from_micros),
        removed: form.removed.map(Instant::from_micros),
        latest: form.latest.map(|(run, at)| LatestRun { run, at: Instant::from_micros(at) }),
        outcomes: form.outcomes.map(LatestOutcomes::from),
        has_triggers: form.triggers,
        renaming: form.renaming.map(Cow::into_owned),
    })))
}

fn is_empty<T>(list: &[T]) -> bool {
    list.is_empty()
}

fn never_paused(pauses: &PauseState) -> bool {
    pauses.current.is_none() && pauses.last.is_none()
}

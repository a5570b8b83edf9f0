//! Occurrences that do not run. The first few in a row with the same reason are runs of their own; after that one span
//! is extended, so that a job that is skipped every second for a year does not fill the store.

use cronhold_schedule::Instant;

use super::bind;
use super::draft::UnitDraft;
use super::finish_run;
use super::occurrence;
use super::run_lifecycle;
use super::timetable::Timetable;
use crate::ids::RunId;
use crate::policy::catch_up::{CountedRange, OccurrenceRange};
use crate::record::{JobState, PauseState, RecordKey, SkipSpan, SkipStreak, Transition};
use crate::run::{Reason, State};
use crate::view::Halt;

/// Neighbouring occurrences that do not run, all for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SkipPart {
    pub(super) reach: OccurrenceRange,
    pub(super) reason: Reason,
}

/// Splits a range of occurrences where a pause began or ended. Occurrences during a pause have the reason
/// [`Reason::Paused`], the others the given reason.
pub(super) fn split_by_pauses(
    table: &Timetable<'_>,
    reach: OccurrenceRange,
    reason: &Reason,
    pauses: &[&PauseState],
    now: Instant,
) -> Vec<SkipPart> {
    let held: Vec<(Instant, Instant)> = pauses.iter().flat_map(|pauses| held(pauses, now)).collect();
    let is_paused = |at: Instant| held.iter().any(|(from, to)| *from <= at && at <= *to);
    // The reason may change at the first occurrence after a pause began or ended.
    let mut seams: Vec<Instant> = held.iter().flat_map(|(from, to)| [just_before(*from), *to]).collect();
    seams.sort_unstable();
    let mut firsts = vec![reach.from];
    for first in seams.into_iter().filter(|seam| *seam >= reach.from).filter_map(|seam| table.next(seam)) {
        let is_other = firsts.last().is_some_and(|last| *last < first && is_paused(*last) != is_paused(first));
        if first <= reach.to && is_other {
            firsts.push(first);
        }
    }
    let ends = firsts[1..].iter().map(|first| table.last_before(*first, reach.from).unwrap_or(reach.from));
    let ends: Vec<Instant> = ends.chain([reach.to]).collect();
    let part = |(from, to): (&Instant, Instant)| SkipPart {
        reach: OccurrenceRange { from: *from, to },
        reason: if is_paused(*from) { Reason::Paused } else { reason.clone() },
    };
    firsts.iter().zip(ends).map(part).collect()
}

/// Records skipped occurrences of a schedule in the order of time.
pub(super) fn record_all(
    draft: &mut UnitDraft<'_>,
    state: &mut JobState,
    streak: &mut Option<SkipStreak>,
    table: &Timetable<'_>,
    parts: Vec<SkipPart>,
) -> Result<(), Halt> {
    parts.into_iter().try_for_each(|part| record(draft, state, streak, table, part))
}

/// Records one part: as a run of its own, as a new span, or by extending the span of the streak.
pub(super) fn record(
    draft: &mut UnitDraft<'_>,
    state: &mut JobState,
    streak: &mut Option<SkipStreak>,
    table: &Timetable<'_>,
    part: SkipPart,
) -> Result<(), Halt> {
    let SkipPart { reach, reason } = part;
    let before = streak.take().filter(|streak| streak.reason == reason);
    let so_far = before.as_ref().map_or(0, |streak| streak.count);
    // The span may have been pruned.
    let open = before.and_then(|streak| streak.span).and_then(|id| draft.skip_span(id));
    // Counting is left out while records are missing, so this record is requested before it.
    draft.view.prefetch(table.identity(state, reach.from));
    let stretch = table.counted(draft.view, reach);
    let span = match open {
        Some(open) => Some(extend_span(draft, state, (*open).clone(), stretch)),
        // A run of its own would have the id of the run that was claimed.
        None if stretch.count == 1 && so_far < SkipStreak::SINGLE && reason != Reason::ClaimedBefore => {
            record_single(draft, state, table, stretch.from, reason.clone())?;
            None
        }
        None => Some(begin_span(draft, state, table, stretch, reason.clone())),
    };
    *streak = Some(SkipStreak { reason, count: so_far.saturating_add(stretch.count), span });
    Ok(())
}

/// Records one occurrence as a skipped run, which an operator can rerun.
fn record_single(
    draft: &mut UnitDraft<'_>,
    state: &mut JobState,
    table: &Timetable<'_>,
    nominal: Instant,
    reason: Reason,
) -> Result<(), Halt> {
    let id = table.run_id(nominal, None);
    // After a cursor was set back, the occurrence may have its runs already.
    if occurrence::has_run(draft, table, nominal) {
        return Ok(());
    }
    let new_run = table.new_run(id, nominal, draft.view.stamp.actor.clone());
    let mut run = run_lifecycle::empty_run(draft, state, new_run);
    run.work = bind::work(table.job, &run, draft.view.world).ok();
    let run = run_lifecycle::skip_run(draft, run, state, reason)?;
    draft.put_run(run);
    Ok(())
}

/// Records many occurrences as one span.
fn begin_span(
    draft: &mut UnitDraft<'_>,
    state: &mut JobState,
    table: &Timetable<'_>,
    stretch: CountedRange,
    reason: Reason,
) -> RunId {
    let id = table.span_id(stretch.from);
    // After a cursor was set back, the span may exist already.
    if draft.view.assume_absent_unless_loaded(&RecordKey::SkipSpan(id)).is_some()
        && let Some(there) = draft.skip_span(id)
    {
        return extend_span(draft, state, (*there).clone(), CountedRange { count: 0, ..stretch });
    }
    let actor = draft.view.stamp.actor.clone();
    let log = vec![Transition::entered(draft.at(), State::Skipped, actor).with_message(reason.to_string())];
    finish_run::count_finished(draft, state, State::Skipped, Some(&table.job.job.retain));
    let span = SkipSpan {
        id,
        number: state.take_number(),
        job: table.job.id.clone(),
        uid: table.job.uid,
        // Invalid args are ignored, as for a single skip.
        args: table.args(stretch.from).unwrap_or_default(),
        schedule: table.id.clone(),
        range: stretch,
        reason,
        actions: 0,
        log,
    };
    put_span(draft, state, span)
}

/// Extends a span by more occurrences.
fn extend_span(draft: &mut UnitDraft<'_>, state: &mut JobState, mut span: SkipSpan, by: CountedRange) -> RunId {
    span.range.to = span.range.to.max(by.to);
    span.range.count = span.range.count.saturating_add(by.count);
    put_span(draft, state, span)
}

fn put_span(draft: &mut UnitDraft<'_>, state: &mut JobState, span: SkipSpan) -> RunId {
    let id = span.id;
    finish_run::record_skip(draft, state, &span.args, id);
    draft.put_skip_span(span);
    id
}

/// The times during which a pause held: the last one that ended, and the current one.
fn held(pauses: &PauseState, now: Instant) -> impl Iterator<Item = (Instant, Instant)> + use<> {
    let current = pauses.current.as_ref().map(|pause| (pause.since, pause.until.map_or(now, |until| until.min(now))));
    pauses.last.into_iter().chain(current)
}

fn just_before(at: Instant) -> Instant {
    at.minus(cronhold_schedule::Span::from_micros(1))
}

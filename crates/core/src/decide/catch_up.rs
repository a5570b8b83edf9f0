//! Starts the next occurrence of a backlog, beside the live schedule. A backlog gives way to everything else: while its
//! next run could not start at once, it waits.

use std::sync::Arc;

use cronhold_schedule::{Instant, Span};

use super::draft::UnitDraft;
use super::occurrence::{self, RunCandidate};
use super::pause;
use super::placement;
use super::skips::{self, SkipPart};
use super::timetable::Timetable;
use crate::decision::{CommandReply, DecidedUnit, Effect};
use crate::ids::{JobId, NodeId};
use crate::job::{CatchUpPolicy, CatchUpRule, QUEUE_LIMIT_DEFAULT};
use crate::policy::catch_up::{CountedRange, OccurrenceRange};
use crate::policy::overlap::Admission;
use crate::record::{Actor, Backlog, JobState, QueuedRun, Record, RecordKey, ScheduleId};
use crate::run::Reason;
use crate::view::{DecisionView, Halt};
use crate::when::When;

/// A backlog that another run of its job blocks is checked again after this time.
const GIVE_WAY: Span = Span::from_secs(1);
/// A backlog that waits for an operator or for another node is checked again after this time.
const LOOK_AGAIN: Span = Span::from_secs(60);

/// Decides about the next occurrence of a backlog.
pub(super) fn decide(view: &DecisionView<'_>, id: &JobId, schedule: &ScheduleId) -> Result<DecidedUnit, Halt> {
    let key = RecordKey::Backlog(id.clone(), schedule.clone());
    let (backlog, job, state) = (view.backlog(id, schedule), view.job(id), view.job_state(id));
    let is_paused = pause::is_paused(view, &state);
    view.require_loaded()?;
    let at = |at| Effect::CatchUp { job: id.clone(), schedule: schedule.clone(), at };
    let only = |effect| DecidedUnit { effects: vec![effect], ..DecidedUnit::default() };
    let Some(backlog) = backlog else { return Ok(only(at(When::Never))) };
    let now = view.stamp.at;
    let look_again = || only(at(now.plus(LOOK_AGAIN).into()));
    let Some((job, definition)) = job.as_ref().and_then(|job| Some((job, job.schedule(schedule)?))) else {
        // The command that removed the schedule has recorded the rest of its backlog.
        let mut draft = UnitDraft::new(view);
        draft.delete(key);
        return draft.finish(CommandReply::Done);
    };
    let mut state = (*state).clone();
    let Ok(table) = Timetable::new(job, schedule, definition, view.world) else { return Ok(look_again()) };
    if is_paused {
        return Ok(look_again());
    }
    let mut draft = UnitDraft::new(view);
    let places = placement::targets_of_occurrence(view, job);
    let is_eligible = placement::may_claim(view, &job.job.nodes, &places);
    let (given_up, rest) = split_by_policy((*backlog).clone(), &table, now);
    if !given_up.is_empty() {
        let reason = if is_eligible { Reason::Missed } else { Reason::NoEligibleNode };
        record_given_up(&mut draft, &mut state, &table, &given_up, &reason)?;
        draft.put_state(state);
        write_backlog(&mut draft, rest.map(|rest| Backlog { due: now, ..rest }), key);
        return draft.finish(CommandReply::Done);
    }
    if !is_eligible {
        return Ok(look_again());
    }
    if !start(&mut draft, &mut state, &table, backlog.position, &places)? {
        return Ok(only(at(now.plus(GIVE_WAY).into())));
    }
    draft.put_state(state);
    write_backlog(&mut draft, advance((*backlog).clone(), &table, now), key);
    draft.finish(CommandReply::Done)
}

/// Splits the rest of a backlog by the job's current catch-up policy; the job may have been changed or paused since.
/// Returns what is given up, the oldest first, and what is still to be caught up.
fn split_by_policy(backlog: Backlog, table: &Timetable<'_>, now: Instant) -> (Vec<OccurrenceRange>, Option<Backlog>) {
    let CatchUpRule { policy, within } = table.job.job.catch_up;
    let oldest_due = now.minus(within);
    let is_wanted = |at: &Instant| table.wake(*at) >= oldest_due;
    let mut given_up = Vec::new();
    let mut rest = Some(backlog);
    while let Some(mut backlog) = rest {
        let OccurrenceRange { from, to } = first_part(&backlog);
        let wanted = match policy {
            CatchUpPolicy::None => None,
            CatchUpPolicy::Last => Some(to).filter(|to| backlog.later.is_empty() && is_wanted(to)),
            CatchUpPolicy::All if is_wanted(&from) => Some(from),
            CatchUpPolicy::All => table.first_due(oldest_due).filter(|at| from < *at && *at <= to),
        };
        let Some(wanted) = wanted else {
            given_up.push(OccurrenceRange { from, to });
            rest = without_first(backlog);
            continue;
        };
        if from < wanted {
            given_up.push(OccurrenceRange { from, to: table.last_before(wanted, from).unwrap_or(from) });
            backlog.position = wanted;
        }
        return (given_up, Some(backlog));
    }
    (given_up, None)
}

/// Adds occurrences to the backlog. Older ones are given up if the policy wants only the newest, or if there are too
/// many separate ranges.
pub(super) fn add(
    draft: &mut UnitDraft<'_>,
    state: &mut JobState,
    table: &Timetable<'_>,
    reach: OccurrenceRange,
) -> Result<(), Halt> {
    let stretch = table.counted(draft.view, reach);
    let CountedRange { from, to, count } = stretch;
    let (job, schedule, due) = (table.job.id.clone(), table.id.clone(), draft.at());
    let new = Backlog { job, schedule, from, position: from, to, count, due, later: Vec::new() };
    let backlog = match draft.view.backlog(&table.job.id, table.id) {
        None => new,
        // The policy wants only the newest occurrence, and the new ones are newer.
        Some(old) if table.job.job.catch_up.policy == CatchUpPolicy::Last => {
            let rest: Vec<OccurrenceRange> = old.rest().map(|rest| rest.reach()).collect();
            record_given_up(draft, state, table, &rest, &Reason::Missed)?;
            new
        }
        Some(old) => {
            let mut all = (*old).clone();
            let (last_to, last_count) = match all.later.last_mut() {
                Some(last) => (&mut last.to, &mut last.count),
                None => (&mut all.to, &mut all.count),
            };
            if table.next(*last_to) == Some(from) {
                *last_to = to;
                *last_count = last_count.saturating_add(count);
            } else {
                all.later.push(stretch);
            }
            if all.later.len() > Backlog::LATER_MAX {
                record_given_up(draft, state, table, &[first_part(&all)], &Reason::Missed)?;
                all = without_first(all).expect("there are later stretches");
            }
            all
        }
    };
    draft.put(Record::Backlog(Arc::new(backlog)));
    Ok(())
}

/// Records occurrences of a backlog that are not caught up.
pub(super) fn record_given_up(
    draft: &mut UnitDraft<'_>,
    state: &mut JobState,
    table: &Timetable<'_>,
    rest: &[OccurrenceRange],
    reason: &Reason,
) -> Result<(), Halt> {
    let parts: Vec<SkipPart> = rest.iter().map(|reach| SkipPart { reach: *reach, reason: reason.clone() }).collect();
    // Occurrences between two ranges have other outcomes, so no range continues the streak of the one before.
    parts.into_iter().try_for_each(|part| skips::record(draft, state, &mut None, table, part))
}

/// Starts the runs of an occurrence if nothing blocks them, and returns whether the occurrence is dealt with. One that
/// has its runs already is.
fn start(
    draft: &mut UnitDraft<'_>,
    state: &mut JobState,
    table: &Timetable<'_>,
    nominal: Instant,
    places: &[Option<NodeId>],
) -> Result<bool, Halt> {
    if occurrence::existing_run(draft, table, nominal, places).is_some() {
        return Ok(true);
    }
    let candidates = occurrence::create_candidates(draft, state, table, nominal, &Actor::CatchUp, places)?;
    let has_ended = |candidate: &RunCandidate| candidate.admission.is_none();
    let may_start = |candidate: &RunCandidate| candidate.admission == Some(Admission::Start);
    let has_ended_or_may_start = |candidate| has_ended(candidate) || may_start(candidate);
    if !candidates.iter().all(has_ended_or_may_start) || candidates.iter().any(may_start) && is_crowded(state, places) {
        return Ok(false);
    }
    for run in occurrence::apply_admissions(draft, state, table, candidates)? {
        draft.put_run(run);
    }
    Ok(true)
}

/// Whether enough runs of the job wait already. For a `nodes: each` job each node may have one waiting run, so that the
/// nodes work on the same part of the backlog.
fn is_crowded(state: &JobState, places: &[Option<NodeId>]) -> bool {
    let waits_for_node = |queued: &QueuedRun| queued.target.is_some() && places.contains(&queued.target);
    u32::try_from(state.queue.len()).unwrap_or(u32::MAX) >= QUEUE_LIMIT_DEFAULT
        || state.queue.iter().any(waits_for_node)
}

/// The backlog without its next occurrence; `None` if that was the last.
fn advance(mut backlog: Backlog, table: &Timetable<'_>, now: Instant) -> Option<Backlog> {
    backlog.due = now;
    match table.next(backlog.position).filter(|next| *next <= backlog.to) {
        Some(next) => {
            backlog.position = next;
            Some(backlog)
        }
        None => without_first(backlog),
    }
}

/// The backlog without its first range; `None` if there is no other.
fn without_first(mut backlog: Backlog) -> Option<Backlog> {
    if backlog.later.is_empty() {
        return None;
    }
    let CountedRange { from, to, count } = backlog.later.remove(0);
    Some(Backlog { from, position: from, to, count, ..backlog })
}

fn first_part(backlog: &Backlog) -> OccurrenceRange {
    OccurrenceRange { from: backlog.position, to: backlog.to }
}

fn write_backlog(draft: &mut UnitDraft<'_>, backlog: Option<Backlog>, key: RecordKey) {
    match backlog {
        Some(backlog) => draft.put(Record::Backlog(Arc::new(backlog))),
        None => draft.delete(key),
    }
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    /// With overlap `skip`, backlogged occurrences run one after the other instead of being skipped.
    #[test]
    fn backlog_waits_while_a_run_is_active() {
        play(
            "
            00:00 put j @every 10m; catch_up all
                next 00:10, job r1
            00:35 due
                next 00:40, backlog 00:10–00:30 of 3
            00:35 catch up
                #1 00:10 starting, backlog 00:20–00:30 of 3
            00:35 catch up
                (catch up 00:35:01)
            00:36 ended #1 yes
                #1 00:10 success
            00:36 catch up
                #2 00:20 starting, backlog 00:30–00:30 of 3
            00:37 ended #2 yes
                #2 00:20 success
            00:40 due
                #3 00:40 starting, next 00:50
            00:41 catch up
                (catch up 00:41:01)
            00:42 ended #3 yes
                #3 00:40 success
            00:42 catch up
                #4 00:30 starting, backlog gone
            00:43 catch up
            ",
        );
    }

    #[test]
    fn backlog_with_overlap_allow_starts_all() {
        play(
            "
            00:00 put j @every 10m; catch_up all; overlap allow
                next 00:10, job r1
            00:35 due
                next 00:40, backlog 00:10–00:30 of 3
            00:35 catch up
                #1 00:10 starting, backlog 00:20–00:30 of 3
            00:35 catch up
                #2 00:20 starting, backlog 00:30–00:30 of 3
            00:35 catch up
                #3 00:30 starting, backlog gone
            ",
        );
    }

    #[test]
    fn backlog_waits_for_a_held_lock_and_for_a_pause() {
        play(
            "
            00:00 put j @every 10m; catch_up all; overlap allow; lock
                next 00:10, job r1
            00:15 due
                next 00:20, backlog 00:10–00:10 of 1
            00:20 due
                #1 00:20 starting, next 00:30
            00:20 catch up
                (catch up 00:20:01)
            00:21 ended #1 yes
                #1 00:20 success
            00:21 pause all
                everything paused
            00:21 catch up
                (catch up 00:22)
            00:22 resume all
                everything resumed
            00:22 catch up
                #2 00:10 starting, backlog gone
            ",
        );
    }

    /// Occurrences between two outages have an outcome and are not caught up again.
    #[test]
    fn second_outage_adds_a_range_to_the_backlog() {
        play(
            "
            00:00 put j @every 10m; catch_up all 3h
                next 00:10, job r1
            00:25 due
                next 00:30, backlog 00:10–00:20 of 2
            00:45 due
                next 00:50, backlog 00:10–00:40 of 4
            00:50 due
                #1 00:50 starting, next 01:00
            00:51 ended #1 yes
                #1 00:50 success
            01:15 due
                next 01:20, backlog 00:10–00:40 of 4 and 01:00–01:10 of 2
            01:16 catch up
                #2 00:10 starting, backlog 00:20–00:40 of 4 and 01:00–01:10 of 2
            01:17 remove j
                #3 00:20–00:40 ×3 skipped: job removed, #4 01:00–01:10 ×2 skipped: job removed, gone, backlog gone, job gone, (wake #2 01:17)
            ",
        );
    }

    /// The number of ranges is limited; the oldest range is dropped.
    #[test]
    fn backlog_with_too_many_ranges_drops_the_oldest() {
        let mut script = String::from("00:00 put j @every 10m; catch_up all 90h; overlap allow\nnext 00:10, job r1\n");
        let mut rest = Vec::new();
        for hour in 0..17 {
            let late = format!("{hour:02}:10–{hour:02}:50 of 5");
            rest.push(late);
            let backlog = format!("backlog {}", rest.join(" and "));
            let next = hour + 1;
            script += &format!("{hour:02}:55 due\nnext {next:02}:00, {backlog}\n");
            script += &format!("{next:02}:00 due\n#{next} {next:02}:00 starting, next {next:02}:10\n");
        }
        rest.remove(0);
        rest.push("17:10–17:20 of 2".to_owned());
        let backlog = format!("backlog {}", rest.join(" and "));
        script += &format!(
            "17:30:30 due
            #18 00:10–00:50 ×5 skipped: missed, next 17:30, {backlog}
            #19 17:30 starting, next 17:40"
        );
        play(&script);
    }

    #[test]
    fn backlog_continues_with_the_next_range() {
        play(
            "
            00:00 put j @every 10m; catch_up all 3h; overlap allow
                next 00:10, job r1
            00:15 due
                next 00:20, backlog 00:10–00:10 of 1
            00:20 due
                #1 00:20 starting, next 00:30
            00:35 due
                next 00:40, backlog 00:10–00:10 of 1 and 00:30–00:30 of 1
            00:36 catch up
                #2 00:10 starting, backlog 00:30–00:30 of 1
            00:36 catch up
                #3 00:30 starting, backlog gone
            ",
        );
    }

    /// With `last`, only the newest occurrence is caught up, so an older backlog is dropped.
    #[test]
    fn catch_up_last_replaces_an_older_backlog() {
        play(
            "
            00:00 put j @every 10m; catch_up last
                next 00:10, job r1
            00:15 due
                next 00:20, backlog 00:10–00:10 of 1
            00:35 due
                #1 00:20 skipped: missed, #2 00:10 skipped: missed, next 00:40, backlog 00:30–00:30 of 1
            ",
        );
    }

    /// Each step of a backlog uses the catch-up policy that the job has at that time.
    #[test]
    fn backlogged_occurrences_older_than_within_are_missed() {
        play(
            "
            00:00 put j @every 10m; catch_up all 1h; overlap allow
                next 00:10, job r1
            00:35 due
                next 00:40, backlog 00:10–00:30 of 3
            00:35 catch up
                #1 00:10 starting, backlog 00:20–00:30 of 3
            00:35 pause j
                job paused
            01:21 catch up
                (catch up 01:22)
            01:21 resume j
                job resumed, (plan 00:40), (wake #1 01:21)
            01:21 catch up
                #2 00:20 skipped: missed, backlog 00:30–00:30 of 3
            72:00 catch up
                #3 00:30 skipped: missed, backlog gone
            ",
        );
        play(
            "
            00:00 put j @every 10m; catch_up all 1h; overlap allow
                next 00:10, job r1
            00:35 due
                next 00:40, backlog 00:10–00:30 of 3
            00:35 pause j
                job paused
            72:00 resume j
                job resumed, (plan 00:40)
            72:00 catch up
                #1 00:10–00:30 ×3 skipped: missed, backlog gone
            ",
        );
    }

    #[test]
    fn changed_catch_up_policy_applies_to_the_rest_of_a_backlog() {
        play(
            "
            00:00 put j a: @every 10m; catch_up all 9h; overlap allow
                a next 00:10, job r1
            00:25 due
                a next 00:30, backlog 00:10–00:20 of 2
            00:30 due
                #1 00:30 starting, a next 00:40
            01:05 due
                a next 01:10, backlog 00:10–00:20 of 2 and 00:40–01:00 of 3
            01:06 put j a: @every 10m; catch_up last 9h; overlap allow
                job r2, (wake #1 01:06)
            01:06 catch up
                #2 00:10–00:20 ×2 skipped: missed, #3 00:40–00:50 ×2 skipped: missed, backlog 01:00–01:00 of 3
            01:07 put j a: @every 10m; catch_up none; overlap allow
                job r3, (wake #1 01:07)
            01:07 catch up
                #4 01:00 skipped: missed, backlog gone
            ",
        );
    }

    #[test]
    fn backlog_without_eligible_node_drops_only_old_occurrences() {
        play(
            "
            00:00 put j @every 10m; catch_up all 1h; overlap allow; nodes gpu
                next 00:10, job r1
            00:35 due
                next 00:40, backlog 00:10–00:30 of 3
            01:10 catch up
                (catch up 01:11)
            01:25 catch up
                #1 00:10–00:20 ×2 skipped: no eligible node, backlog 00:30–00:30 of 3
            01:25 label gpu
            01:25 catch up
                #2 00:30 starting, backlog gone
            ",
        );
    }

    #[test]
    fn backlogged_run_with_invalid_args_ends_in_error() {
        play(
            "
            00:00 put j @every 10m; param region; catch_up all
                next 00:10, job r1
            00:15 due
                next 00:20, backlog 00:10–00:10 of 1
            00:15 catch up
                #1 00:10 error: not bound: the param `region` needs a value, backlog gone
            ",
        );
    }
}

//! Pauses a job, or all jobs. Running programs go on, cursors do not advance, and runs that an operator starts by name
//! still start.

use std::sync::Arc;

use cronhold_schedule::Instant;

use super::draft::UnitDraft;
use super::resume;
use crate::decision::{CommandReply, DecidedUnit, Effect, Rejection};
use crate::ids::JobId;
use crate::record::{ActivePause, Actor, JobState, PauseState, Record, RecordKind};
use crate::view::{DecisionView, Halt};

/// Pauses a job, or all jobs when `job` is absent.
pub(super) fn decide(
    view: &DecisionView<'_>,
    job: Option<&JobId>,
    why: &str,
    until: Option<Instant>,
) -> Result<DecidedUnit, Halt> {
    if let Some(until) = until.filter(|until| *until <= view.stamp.at) {
        return Err(Rejection::PauseUntil(until).into());
    }
    let mut draft = UnitDraft::new(view);
    match job {
        Some(id) => {
            let (record, mut state) = (view.job(id), draft.job_state(id));
            if record.is_none() {
                return Err(Rejection::NoJob(id.clone()).into());
            }
            begin_or_change(view, &mut state.pauses, (job, why, until))?;
            draft.put_state(state);
        }
        None => {
            view.replace_unreadable(&[RecordKind::Pause]);
            let mut pauses = (*view.pauses()).clone();
            begin_or_change(view, &mut pauses, (None, why, until))?;
            draft.put(Record::Pause(Arc::new(pauses)));
        }
    }
    draft.finish(CommandReply::Done)
}

/// Begins a pause, or changes when the one that is in effect ends.
fn begin_or_change(
    view: &DecisionView<'_>,
    pauses: &mut PauseState,
    (job, why, until): (Option<&JobId>, &str, Option<Instant>),
) -> Result<(), Rejection> {
    let (now, by) = (view.stamp.at, &view.stamp.actor);
    resume::end_if_expired(pauses, now);
    match &mut pauses.current {
        Some(current) if current.until == until => return Err(Rejection::Paused(job.cloned())),
        Some(current) => {
            (current.until, current.by) = (until, by.clone());
            if !why.is_empty() {
                current.why = why.to_owned();
            }
        }
        None => begin(pauses, now, by, why, until),
    }
    Ok(())
}

/// Begins a pause.
pub(super) fn begin(pauses: &mut PauseState, since: Instant, by: &Actor, why: &str, until: Option<Instant>) {
    pauses.current = Some(ActivePause { since, by: by.clone(), why: why.to_owned(), until });
}

/// Whether a job, or everything, is paused at the time of the decision.
pub(super) fn is_paused(view: &DecisionView<'_>, state: &JobState) -> bool {
    let now = view.stamp.at;
    state.pauses.is_paused_at(now) || view.pauses().is_paused_at(now)
}

/// The ends of the pauses that keep something of a job from starting. A node that was not there when a pause began plans
/// its end when it first meets it.
pub(super) fn planned_ends(state: &JobState, everything: &PauseState) -> Vec<Effect> {
    let end =
        |pauses: &PauseState, job: Option<JobId>| Some(Effect::EndPause { job, at: pauses.current.as_ref()?.until? });
    let own = end(&state.pauses, Some(state.job.clone()));
    own.into_iter().chain(end(everything, None)).collect()
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    #[test]
    fn pause_and_resume_apply_to_one_job_or_all() {
        play(
            "
            00:00 put j @every 10m
                next 00:10, job r1
            00:01 pause j for the fair
                job paused: for the fair
            00:02 pause j
                ! the job `j` is already paused
            00:03 pause nobody
                ! there is no job `nobody`
            00:04 pause all
                everything paused
            00:05 pause all once more
                ! everything is already paused
            00:06 resume j
                job resumed, (plan 00:10)
            00:07 resume j
                ! the job `j` is not paused
            00:08 resume all
                everything resumed
            00:09 resume all
                ! everything is not paused
            ",
        );
    }

    /// Either pause suffices. After its end, the occurrences that it covered are recorded with that reason.
    #[test]
    fn timed_pause_ends_by_itself() {
        play(
            "
            00:00 put j @every 10m
                next 00:10, job r1
            00:01 pause j until=00:15 for the fair
                job paused until 00:15: for the fair
            00:10 due
                (rest 00:10), (end pause of j 00:15)
            00:12 end-pause j
                (end pause of j 00:15), unchanged
            00:15 end-pause j
                job resumed, (plan 00:10)
            00:15 end-pause j
                unchanged
            00:15 due
                next 00:20, backlog 00:10–00:10 of 1
            00:16 end-pause nobody
                unchanged
            00:16 pause all until=00:16
                ! a pause cannot end at 2026-01-05T00:16:00Z, which has passed
            00:16 pause all until=00:25
                everything paused until 00:25
            00:25 end-pause all
                everything resumed
            00:25 end-pause all
                unchanged
            ",
        );
    }

    #[test]
    fn end_of_a_pause_can_be_changed() {
        play(
            "
            00:00 put j
                job r1
            00:01 pause j for the fair
                job paused: for the fair
            00:02 pause j until=00:10
                job paused until 00:10: for the fair
            00:03 pause j until=00:10
                ! the job `j` is already paused
            00:04 pause j until=00:20 rain
                job paused until 00:20: rain
            00:10 end-pause j
                (end pause of j 00:20), unchanged
            00:11 pause j
                job paused: rain
            00:20 end-pause j
                unchanged
            00:21 resume j
                job resumed
            ",
        );
    }

    /// The end of the pause is not recorded, because no node was running.
    #[test]
    fn expired_pause_holds_nothing_back() {
        play(
            "
            00:00 put j @every 10m; catch_up none
                next 00:10, job r1
            00:01 pause j until=00:15
                job paused until 00:15
            00:16 due
                #1 00:10 skipped: paused, next 00:20
            00:20 due
                #2 00:20 starting, next 00:30
            00:21 pause j until=00:40
                job paused until 00:40
            00:22 repair j
                unchanged
            02:00 repair j
                job resumed
            02:01 pause j
                job paused
            ",
        );
    }

    /// Occurrences after the end of the pause were missed, however late its end is recorded.
    #[test]
    fn pause_whose_end_is_recorded_late_ended_on_time() {
        play(
            "
            00:00 put j @every 10m; catch_up none
                next 00:10, job r1
            00:05 pause j until=00:25
                job paused until 00:25
            00:45 end-pause j
                job resumed, (plan 00:10)
            00:45 due
                #1 00:10–00:20 ×2 skipped: paused, #2 00:30–00:40 ×2 skipped: missed, next 00:50
            ",
        );
    }

    #[test]
    fn retry_waits_for_the_end_of_a_timed_pause() {
        play(
            "
            00:00 put j retry 2
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 pause j until=00:10
                job paused until 00:10
            00:03 ended #1 no
                #1 00:01 failure: exit code 1, #2 00:01 attempt 2 scheduled
            00:04 wake #2
                #2 00:01 attempt 2 scheduled, (end pause of j 00:10)
            00:10 end-pause j
                job resumed, (wake #2 00:10)
            00:10 wake #2
                #2 00:01 attempt 2 starting
            ",
        );
    }

    #[test]
    fn paused_cursor_does_not_advance() {
        play(
            "
            00:00 put j @every 10m; catch_up none
                next 00:10, job r1
            00:05 pause j
                job paused
            00:10 due
                (rest 00:10)
            00:15 pause all
                everything paused
            00:16 resume j
                job resumed, (plan 00:10)
            00:20 due
                (rest 00:10)
            00:35 resume all
                everything resumed
            00:35 due
                #1 00:10–00:30 ×3 skipped: paused, next 00:40
            ",
        );
    }
}

//! Pauses a job, or all jobs. Running programs go on, cursors do not advance, and runs that an operator starts by name
//! still start.

use std::sync::Arc;

use cronhold_schedule::Instant;

use super::draft::UnitDraft;
use crate::decision::{CommandReply, DecidedUnit, Rejection};
use crate::ids::JobId;
use crate::record::{ActivePause, Actor, PauseState, Record, RecordKind};
use crate::view::{DecisionView, Halt};

/// Pauses a job, or all jobs when `job` is absent.
pub(super) fn decide(view: &DecisionView<'_>, job: Option<&JobId>, why: &str) -> Result<DecidedUnit, Halt> {
    let mut draft = UnitDraft::new(view);
    match job {
        Some(id) => {
            let (job, mut state) = (view.job(id), draft.job_state(id));
            if job.is_none() {
                return Err(Rejection::NoJob(id.clone()).into());
            }
            if state.pauses.is_paused() {
                return Err(Rejection::Paused(Some(id.clone())).into());
            }
            begin(&mut state.pauses, view.stamp.at, &view.stamp.actor, why);
            draft.put_state(state);
        }
        None => {
            view.replace_unreadable(&[RecordKind::Pause]);
            let mut pauses = (*view.pauses()).clone();
            if pauses.is_paused() {
                return Err(Rejection::Paused(None).into());
            }
            begin(&mut pauses, view.stamp.at, &view.stamp.actor, why);
            draft.put(Record::Pause(Arc::new(pauses)));
        }
    }
    draft.finish(CommandReply::Done)
}

/// Begins a pause.
pub(super) fn begin(pauses: &mut PauseState, since: Instant, by: &Actor, why: &str) {
    pauses.current = Some(ActivePause { since, by: by.clone(), why: why.to_owned() });
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

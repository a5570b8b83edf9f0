//! Removes a job. Its finished runs stay until they expire, its run numbers go on if a job of that name is created again
//! before that, and runs that still wait are skipped.

use super::draft::UnitDraft;
use super::retire::RetiringSchedules;
use super::{put_job, resume};
use crate::command::Precondition;
use crate::decision::{CommandReply, DecidedUnit, Rejection};
use crate::ids::JobId;
use crate::record::{JobSource, RecordKey, RecordKind};
use crate::run::Reason;
use crate::view::{DecisionView, Halt};

/// Removes the job and retires its schedules.
pub(super) fn decide(
    view: &DecisionView<'_>,
    id: &JobId,
    source: &JobSource,
    provided: Precondition,
) -> Result<DecidedUnit, Halt> {
    view.replace_unreadable(&[
        RecordKind::Job,
        RecordKind::JobState,
        RecordKind::Cursor,
        RecordKind::Backlog,
        RecordKind::Triggers,
    ]);
    let mut draft = UnitDraft::new(view);
    let (job, mut state) = (view.job(id), draft.job_state(id));
    view.require_loaded()?;
    let is_unreadable = view.is_unreadable(&RecordKey::Job(id.clone()));
    let before = state.clone();
    if let Some(job) = &job {
        if !job.source.is_open_to(source) {
            return Err(Rejection::OtherSource { job: id.clone(), source_of_job: job.source.clone() }.into());
        }
        put_job::check(id, Some(job), false, provided)?;
        let retiring = RetiringSchedules::new(&draft, job, job.schedules().map(|(schedule, _)| schedule));
        retiring.retire(&mut draft, &mut state, &Reason::JobRemoved)?;
    } else if is_unreadable {
        // Its schedules are not known. A cursor without a job starts nothing, and is deleted when it is due.
        put_job::check(id, None, true, provided)?;
    } else {
        return Err(Rejection::NoJob(id.clone()).into());
    }
    let has_policy = job.as_ref().is_none_or(|job| job.job.batching_policy().is_some());
    if has_policy || std::mem::take(&mut state.has_triggers) {
        let triggers = RecordKey::Triggers(id.clone());
        state.has_triggers = false;
        if view.stored(&triggers).is_some() || view.is_unreadable(&triggers) {
            draft.delete(triggers);
        }
    }
    resume::end(&mut state.pauses, view.stamp.at);
    resume::wake_all(&mut draft, &state);
    let key = RecordKey::JobState(id.clone());
    if state != before || view.stored(&key).is_some() || view.is_unreadable(&key) {
        state.removed = Some(view.stamp.at);
        draft.put_state(state);
    }
    draft.delete(RecordKey::Job(id.clone()));
    draft.finish(CommandReply::Done)
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    #[test]
    fn remove_with_outdated_revision_is_rejected() {
        play(
            "
            00:00 put j @every 10m
                next 00:10, job r1
            00:01 put j @every 20m
                next 00:20, gone, job r2
            00:02 discard 1 j
                ! the job `j` has changed since it was read; its current revision is 2
            00:03 discard another j
                ! the job `j` has changed since it was read; its current revision is 2
            00:04 discard 2 j
                gone, job gone
            00:05 discard 2 j
                ! there is no job `j`
            ",
        );
    }

    /// The job is gone after the unit, and its runs had its actions.
    #[test]
    fn occurrence_that_the_removal_skips_has_its_actions() {
        play(
            "
            00:00 put j @every 10m; on skipped run other
                next 00:10, job r1
            00:05 pause j
                job paused
            00:15 remove j
                #1 00:10 skipped: paused, action 0 skipped run other at node 1.1, gone, job resumed, job gone
            ",
        );
    }

    #[test]
    fn removed_job_leaves_nothing_that_starts() {
        play(
            "
            00:00 put j @every 10m; overlap queue
                next 00:10, job r1
            00:10 due
                #1 00:10 starting, next 00:20
            00:20 due
                #2 00:20 waiting, next 00:30
            00:25 remove j
                gone, job gone, (wake #2 00:25), (wake #1 00:25)
            00:30 due
            00:31 remove j
                ! there is no job `j`
            ",
        );
    }

    /// Due and backlogged occurrences get an outcome; run numbers and cursors continue if the job is created again.
    #[test]
    fn occurrences_due_at_removal_are_recorded() {
        play(
            "
            00:00 put j @every 10m; catch_up all 3h
                next 00:10, job r1
            00:45 due
                next 00:50, backlog 00:10–00:40 of 4
            00:45 catch up
                #1 00:10 starting, backlog 00:20–00:40 of 4
            00:55 pause j
                job paused
            01:15 remove j
                #2 00:20–00:40 ×3 skipped: job removed, #3 00:50 skipped: job removed, #4 01:00–01:10 ×2 skipped: paused, gone, backlog gone, job resumed, job gone, (wake #1 01:15)
            01:20 put j @every 10m
                next 01:30, job r1
            01:30 due
                #5 01:30 skipped: overlap, next 01:40
            ",
        );
    }

    #[test]
    fn operators_may_remove_foreign_jobs() {
        play(
            "
            00:00 put j
                job r1
            00:01 withdraw j
                job gone
            00:02 foreign j
                job r1
            00:03 remove j
                job gone
            ",
        );
    }

    #[test]
    fn only_the_source_of_a_job_may_remove_it() {
        play(
            "
            00:00 load j @every 10m
                next 00:10, job r1
            00:01 remove j
                ! the job `j` comes from a job file
            00:02 put j @every 20m
                ! the job `j` comes from a job file
            ",
        );
    }
}

//! Resumes a job, or all jobs. Occurrences that passed during the pause are decided when their cursors fire again, by
//! the same rules as after an outage.

use std::sync::Arc;

use cronhold_schedule::Instant;

use super::draft::UnitDraft;
use crate::decision::{CommandReply, DecidedUnit, Effect, Rejection};
use crate::ids::JobId;
use crate::policy::catch_up::GRACE;
use crate::record::{JobState, PauseState, Record, RecordKey, RecordKind};
use crate::view::{DecisionView, Halt};

/// Resumes a job, or all jobs when `job` is absent.
pub(super) fn decide(view: &DecisionView<'_>, job: Option<&JobId>) -> Result<DecidedUnit, Halt> {
    match job {
        Some(id) => of_job(view, id),
        None => of_everything(view),
    }
}

/// Ends the pause of a job, or of all jobs, if it ends by itself and its time has come.
pub(super) fn end_expired(view: &DecisionView<'_>, job: Option<&JobId>) -> Result<DecidedUnit, Halt> {
    let pauses = job.map_or_else(|| (*view.pauses()).clone(), |id| view.job_state(id).pauses.clone());
    let is_there = job.is_none_or(|id| view.job(id).is_some());
    view.require_loaded()?;
    let until = pauses.current.as_ref().filter(|_| is_there).and_then(|pause| pause.until);
    match until {
        Some(until) if until <= view.stamp.at => decide(view, job),
        // The pause was changed after its end was planned.
        until => Ok(DecidedUnit {
            effects: until.map(|at| Effect::EndPause { job: job.cloned(), at }).into_iter().collect(),
            answer: CommandReply::Unchanged,
            ..DecidedUnit::default()
        }),
    }
}

fn of_job(view: &DecisionView<'_>, id: &JobId) -> Result<DecidedUnit, Halt> {
    let mut draft = UnitDraft::new(view);
    let (job, mut state) = (view.job(id), draft.job_state(id));
    view.require_loaded()?;
    let job = job.ok_or_else(|| Rejection::NoJob(id.clone()))?;
    if !state.pauses.is_paused() {
        return Err(Rejection::NotPaused(Some(id.clone())).into());
    }
    for (schedule, _) in job.schedules() {
        if let Some(cursor) = view.cursor(id, schedule).filter(|cursor| cursor.next.is_some()) {
            let next = cursor.next.zip(cursor.wake);
            draft.emit(Effect::Plan { job: id.clone(), schedule: schedule.clone(), next });
        }
    }
    end(&mut state.pauses, view.stamp.at);
    wake_all(&mut draft, &state);
    draft.put_state(state);
    draft.finish(CommandReply::Done)
}

/// Nodes plan all paused cursors again when they see this record change. That would be too much for one decision.
fn of_everything(view: &DecisionView<'_>) -> Result<DecidedUnit, Halt> {
    view.replace_unreadable(&[RecordKind::Pause]);
    let mut pauses = (*view.pauses()).clone();
    if !pauses.is_paused() && !view.is_unreadable(&RecordKey::Pause) {
        return Err(Rejection::NotPaused(None).into());
    }
    end(&mut pauses, view.stamp.at);
    let mut draft = UnitDraft::new(view);
    draft.put(Record::Pause(Arc::new(pauses)));
    draft.finish(CommandReply::Done)
}

/// Ends the current pause and remembers it as the last. A pause that began within the grace period after the one before
/// it is merged with that one, because cursors may not have advanced in between. A pause that ended by itself long ago,
/// while no node was there, ended at its time.
pub(super) fn end(pauses: &mut PauseState, now: Instant) {
    if let Some(pause) = pauses.current.take() {
        let now = pause.until.filter(|until| until.plus(GRACE) < now).unwrap_or(now);
        let before = pauses.last.filter(|(_, ended)| pause.since <= ended.plus(GRACE));
        pauses.last = Some((before.map_or(pause.since, |(since, _)| since), now));
    }
}

/// Ends the current pause if it has ended by itself.
pub(super) fn end_if_expired(pauses: &mut PauseState, now: Instant) {
    if pauses.current.as_ref().is_some_and(|pause| pause.has_expired(now)) {
        end(pauses, now);
    }
}

/// Wakes all runs that may wait: those in the queue, and retries, which count as active.
pub(super) fn wake_all(draft: &mut UnitDraft<'_>, state: &JobState) {
    let at = draft.at().into();
    let waiting = state.queued();
    let retries = state.active.iter().map(|active| active.run).filter(|run| !state.is_queued(*run));
    for run in waiting.chain(retries) {
        draft.emit(Effect::Wake { run, at });
    }
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    #[test]
    fn resume_wakes_waiting_runs() {
        play(
            "
            00:00 put j @every 10m; overlap queue
                next 00:10, job r1
            00:10 due
                #1 00:10 starting, next 00:20
            00:20 due
                #2 00:20 waiting, next 00:30
            00:21 pause j
                job paused
            00:22 resume j
                job resumed, (plan 00:30), (wake #2 00:22), (wake #1 00:22)
            ",
        );
    }

    /// Occurrences outside of the pause were missed for another reason.
    #[test]
    fn occurrences_during_and_outside_a_pause_have_different_reasons() {
        play(
            "
            00:00 put j @every 10m; catch_up none
                next 00:10, job r1
            00:25 pause j
                job paused
            00:45 resume j
                job resumed, (plan 00:10)
            01:05 due
                #1 00:10–00:20 ×2 skipped: missed, #2 00:30–00:40 ×2 skipped: paused, #3 00:50–01:00 ×2 skipped: missed, next 01:10
            ",
        );
    }

    /// If nothing was decided between two pauses, they count as one.
    #[test]
    fn adjacent_pauses_are_merged() {
        play(
            "
            00:00 put j @every 10m; catch_up none
                next 00:10, job r1
            00:05 pause j
                job paused
            00:15 resume j
                job resumed, (plan 00:10)
            00:15 pause j
                job paused
            00:25 resume j
                job resumed, (plan 00:10)
            00:25 due
                #1 00:10–00:20 ×2 skipped: paused, next 00:30
            ",
        );
    }

    /// Afterwards the catch-up policy applies as after an outage.
    #[test]
    fn occurrences_during_a_pause_are_caught_up() {
        play(
            "
            00:00 put j @every 10m; catch_up all 25m
                next 00:10, job r1
            00:05 pause j
                job paused
            00:45 resume j
                job resumed, (plan 00:10)
            00:45 due
                #1 00:10 skipped: paused, next 00:50, backlog 00:20–00:40 of 3
            ",
        );
    }
}

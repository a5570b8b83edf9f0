//! The end of a run, in one commit: the run leaves the job's set of runs, its lock is released, its retry is created,
//! its outcome is recorded for conditions of other runs, and a schedule that counts from its end gets its next time.

use std::sync::Arc;

use cronhold_schedule::{Span, Timing};

use super::bind;
use super::draft::UnitDraft;
use super::pools;
use super::run_lifecycle::enter_state;
use crate::args::Args;
use crate::decision::Effect;
use crate::ids::RunId;
use crate::job::Retain;
use crate::policy::action_filter::OutcomeStep;
use crate::policy::retention::with_margin;
use crate::policy::retry::{self, AttemptEnd};
use crate::record::{
    Actor, Cursor, ExecutionPolicy, JobRecord, JobState, LatestOutcome, LockName, RecordKey, Run, ScheduleId,
    Transition,
};
use crate::run::{Cause, Reason, State};
use crate::view::{DecisionView, Halt};

/// Prefetches what [`finish`] reads, for a decision that learns only later whether the run ends.
pub(super) fn prefetch_end(view: &DecisionView<'_>, run: &Run, job: &JobRecord, state: &JobState) {
    let follows = run.schedule.as_ref().filter(|id| job.schedule(id).is_some_and(counts_from_previous));
    let cursor = follows.map(|schedule| RecordKey::Cursor(run.job.clone(), schedule.clone()));
    view.prefetch(identity_key(state, &run.args).into_iter().chain(cursor).chain(pools::keys(run)));
}

/// Ends a run, in the name of the command's actor.
pub(super) fn finish(
    draft: &mut UnitDraft<'_>,
    run: Run,
    state: &mut JobState,
    cause: Cause,
    reason: Option<Reason>,
) -> Result<Run, Halt> {
    let actor = draft.view.stamp.actor.clone();
    finish_as(draft, run, state, cause, reason, actor)
}

/// Ends a run in the name of an actor.
pub(super) fn finish_as(
    draft: &mut UnitDraft<'_>,
    mut run: Run,
    state: &mut JobState,
    cause: Cause,
    reason: Option<Reason>,
    actor: Actor,
) -> Result<Run, Halt> {
    let had_program = run.state.has_program();
    let message = reason.as_ref().map(ToString::to_string).unwrap_or_default();
    enter_state(&mut run, cause, draft.at(), actor, &message)?;
    run.reason = reason;
    run.due = None;
    state.forget(run.id);
    state.observe_end(&run);
    if let Some(lock) = run.lock.clone().filter(|_| had_program) {
        draft.release_lock(lock, run.id);
    }
    pools::leave(draft, run.id, &run.pools);
    let job = draft.job(&run.job).filter(|job| job.uid == run.uid);
    if let Some(job) = &job {
        if let Some(retry) = create_retry(draft, &run, state, job) {
            run.retried_by = Some(retry.id);
            follow_retry(draft, &run, job, retry.id);
            draft.put_run(retry);
        } else {
            plan_after(draft, &run, job);
        }
    }
    run.late_at = None;
    count_finished(draft, state, run.state, job.as_deref().map(|job| &job.job.retain));
    if run.retried_by.is_none() {
        record_outcome(draft, state, &run);
    }
    Ok(run)
}

/// Creates the next attempt, if the job's retry policy wants one. It counts as active while it waits for its time.
fn create_retry(draft: &UnitDraft<'_>, run: &Run, state: &mut JobState, job: &JobRecord) -> Option<Run> {
    let reason = run.reason.as_ref();
    let ended = AttemptEnd { state: run.state, reason, attempt: run.attempt, at: draft.at(), run: run.id };
    let at = retry::next_attempt(&job.job.retry, job.job.on_lost, ended)?;
    let mut next = Run {
        args: run.args.clone(),
        schedule: run.schedule.clone(),
        state: State::Scheduled,
        attempt: run.attempt + 1,
        retry_of: Some(run.id),
        target: run.target,
        work: run.work.clone(),
        triggers: Arc::clone(&run.triggers),
        lock: LockName::of(&job.id, &job.job.lock),
        // Lock and lease follow the job's current definition.
        terms: ExecutionPolicy { lease: bind::lease(&job.job, draft.view.world), ..run.terms.clone() },
        due: Some(at),
        // All attempts together are late once.
        late_at: run.late_at,
        log: vec![Transition::entered(draft.at(), State::Scheduled, Actor::Retry)],
        ..Run::blank(run.id.retry(), state.take_number(), run.job.clone(), run.uid, run.nominal)
    };
    // Templates may refer to the number of the attempt.
    next.work = bind::work(job, &next, draft.view.world).ok().or(next.work);
    state.activate(&next);
    Some(next)
}

/// Lets a schedule that counts from the end of this run count from the end of its retry instead.
fn follow_retry(draft: &mut UnitDraft<'_>, run: &Run, job: &JobRecord, retry: RunId) {
    let Some((_, mut cursor)) = following_cursor(draft, run, job) else { return };
    cursor.follows = Some(retry);
    draft.put_cursor(cursor);
}

/// Sets the next time of a schedule that counts from the end of this run.
pub(super) fn plan_after(draft: &mut UnitDraft<'_>, run: &Run, job: &JobRecord) {
    let Some((schedule, mut cursor)) = following_cursor(draft, run, job) else { return };
    let next = match job.compile(schedule, draft.view.world) {
        Ok(compiled) => compiled.after_run(draft.at()),
        // Its zone or calendar is missing and may come back. The occurrence waits for that when it is due.
        Err(_) => Some(draft.at().plus(interval(schedule))),
    };
    cursor.follows = None;
    cursor.next = next.filter(|_| job.job.enables(schedule));
    cursor.wake = cursor.next;
    draft.put_cursor(cursor);
}

/// The schedule whose cursor waits for the end of a run.
pub(super) fn following_schedule(draft: &UnitDraft<'_>, run: RunId, job: &JobRecord) -> Option<ScheduleId> {
    let mut counting = job.schedules().filter(|(_, schedule)| counts_from_previous(schedule));
    let follows = |id: &ScheduleId| draft.cursor(&job.id, id).is_some_and(|cursor| cursor.follows == Some(run));
    counting.find(|(id, _)| follows(id)).map(|(id, _)| id.clone())
}

/// The schedule that counts from the end of this run, with its cursor.
fn following_cursor<'j>(
    draft: &UnitDraft<'_>,
    run: &Run,
    job: &'j JobRecord,
) -> Option<(&'j crate::job::JobSchedule, Cursor)> {
    let id = run.schedule.as_ref()?;
    let schedule = job.schedule(id).filter(|schedule| counts_from_previous(schedule))?;
    let cursor = draft.cursor(&run.job, id).filter(|cursor| cursor.follows == Some(run.id));
    cursor.map(|cursor| (schedule, cursor))
}

/// Whether a schedule counts from the end of its previous run.
pub(super) fn counts_from_previous(schedule: &crate::job::JobSchedule) -> bool {
    matches!(schedule.spec.timing, Timing::After { .. })
}

/// The time from the end of a run to the next one; zero for schedules that do not count from the previous run.
pub(super) fn interval(schedule: &crate::job::JobSchedule) -> Span {
    match schedule.spec.timing {
        Timing::After { interval } => interval.max(Span::from_secs(1)),
        _ => Span::ZERO,
    }
}

/// Counts a finished run, and asks for a pruning when the job keeps clearly too many.
pub(super) fn count_finished(
    draft: &mut UnitDraft<'_>,
    state: &mut JobState,
    finished: State,
    retain: Option<&Retain>,
) {
    let default = Retain::default();
    let retain = retain.unwrap_or(&default);
    let limit = draft.view.kept_limit(retain, finished);
    let Some(kept) = state.kept.of(finished) else { return };
    *kept = kept.saturating_add(1);
    if *kept > with_margin(limit) {
        draft.emit(Effect::Prune { job: state.job.clone() });
    }
}

/// Records the outcome of a run, which conditions of other runs and filters of actions read.
pub(super) fn record_outcome(draft: &mut UnitDraft<'_>, state: &mut JobState, run: &Run) {
    let mut outcomes = draft.outcomes(state, &run.args);
    outcomes.set(run.state, Some(LatestOutcome { run: run.id, at: draft.at() }));
    // The outcome of an attempt that was retried is that of the last attempt.
    let step = OutcomeStep::new(outcomes.streak, run.state).filter(|_| run.retried_by.is_none());
    if let Some(step) = step {
        outcomes.streak = Some(step.after);
        draft.set_outcome_step(run.id, step);
    }
    draft.set_outcomes(state, &run.args, outcomes);
}

/// Records that occurrences with these args were skipped.
pub(super) fn record_skip(draft: &mut UnitDraft<'_>, state: &mut JobState, args: &Args, span: RunId) {
    let mut outcomes = draft.outcomes(state, args);
    outcomes.set(State::Skipped, Some(LatestOutcome { run: span, at: draft.at() }));
    draft.set_outcomes(state, args, outcomes);
}

/// The record with the outcomes of runs with these args, beside the state of their job.
pub(super) fn identity_key(state: &JobState, args: &Args) -> Option<RecordKey> {
    let is_in_state = args.is_empty() && state.outcomes.is_some();
    (!is_in_state).then(|| RecordKey::Identity(state.job.clone(), args.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::testing::{job_id, play};
    use crate::record::{Identity, JobState, Record, RecordVersion, StoredRecord};

    /// An earlier version stored the outcomes of runs without args in an identity.
    #[test]
    fn outcomes_of_an_earlier_version_come_into_the_state() {
        let mut bench = play(
            "00:00 put up overlap allow
                job r1
            00:00 put down needs after up
                job r1
            00:01 run up
                up#1 00:01 starting, → #1
            00:01 ended up#1 yes
                up#1 00:01 success",
        );
        let (state_key, identity_key) =
            (RecordKey::JobState(job_id("up")), RecordKey::Identity(job_id("up"), Args::default()));
        let Record::JobState(state) = bench.records[&state_key].record.clone() else { panic!("a state") };
        let outcomes = state.outcomes.expect("it ended");
        let version = RecordVersion::new(9, 9);
        let earlier = Record::JobState(Arc::new(JobState { outcomes: None, ..(*state).clone() }));
        let identity = Record::Identity(Arc::new(Identity { job: job_id("up"), args: Args::default(), outcomes }));
        for record in [earlier, identity] {
            bench.records.insert(record.key(), StoredRecord { record, version });
        }
        bench.now = bench.now.plus(Span::from_secs(60));
        assert_eq!(bench.happens("run down"), ["down#1 00:02 starting, → #1"], "it sees the success");
        bench.now = bench.now.plus(Span::from_secs(60));
        bench.happens("run up");
        assert_eq!(bench.happens("ended up#2 no"), ["up#2 00:03 failure: exit code 1"]);
        let Record::JobState(state) = bench.records[&state_key].record.clone() else { panic!("a state") };
        let now = state.outcomes.expect("they are in the state");
        assert_eq!(now.success, outcomes.success);
        assert!(now.failure.is_some() && !bench.records.contains_key(&identity_key));
    }
}

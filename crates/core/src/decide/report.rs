//! Applies a report about a run's program. Reports may arrive late, twice or in any order; one that does not fit the
//! run's state changes nothing.

use std::sync::Arc;

use super::draft::UnitDraft;
use super::finish_run;
use super::run_lifecycle;
use crate::command::{ExitOutcome, ProgramReport};
use crate::decision::{CommandReply, DecidedUnit, Effect};
use crate::ids::RunId;
use crate::plugin::PluginProgress;
use crate::record::{Actor, ResolvedProgram, Run, RunProgress, ServiceState, Transition, TransitionKind};
use crate::remote;
use crate::run::{self, Cause, Reason, State};
use crate::view::{DecisionView, Halt};

pub(super) fn decide(view: &DecisionView<'_>, id: RunId, report: &ProgramReport) -> Result<DecidedUnit, Halt> {
    let nothing = DecidedUnit { answer: CommandReply::Unchanged, ..DecidedUnit::default() };
    let Some(run) = view.run(id) else { return Ok(nothing) };
    if run.owner.is_none_or(|owner| owner.node != view.stamp.owner.node) {
        return Ok(nothing);
    }
    if run.state.is_finished() {
        return late(view, &run, report);
    }
    if !run.state.has_program() {
        return Ok(nothing);
    }
    match report {
        ProgramReport::Launched => launched(view, &run),
        ProgramReport::TaskStarted(task) => task_started(view, &run, task),
        ProgramReport::Progress(progress) => progressed(view, &run, progress),
        ProgramReport::Ended(verdict) => ended(view, &run, verdict),
        // A running program was launched, so the report is outdated.
        ProgramReport::NotLaunched(_) if run.state == State::Running => Ok(nothing),
        ProgramReport::NotLaunched(why) => gone(view, &run, Reason::NotLaunched(why.clone())),
        ProgramReport::Lost => lost(view, &run),
        ProgramReport::KeeperLost => gone(view, &run, Reason::KeeperLost),
        ProgramReport::LockLost => unlocked(view, &run),
    }
}

/// Handles a report for a run that was declared finished while its program went on. A program that holds a lease or was
/// asked to stop must end now. Any other may go on; its result is added to the run's log and does not change its state.
fn late(view: &DecisionView<'_>, run: &Arc<Run>, report: &ProgramReport) -> Result<DecidedUnit, Halt> {
    let mut draft = UnitDraft::new(view);
    match report {
        ProgramReport::Launched if run.terms.lease.is_some() || run.ending.is_some() => {
            draft.emit(Effect::Stop { run: Arc::clone(run) });
        }
        ProgramReport::Ended(verdict) if is_lost(run) && !run.log.iter().any(Transition::is_late_result) => {
            let mut after = (**run).clone();
            let how = match (&verdict.reason, verdict.success) {
                (Some(reason), _) => reason.to_string(),
                (None, true) => "success".to_owned(),
                (None, false) => "failure".to_owned(),
            };
            after.log.push(Transition {
                message: format!("its program ended later: {how}"),
                kind: TransitionKind::LateResult,
                ..Transition::entered(draft.at(), run.state, Actor::Program)
            });
            draft.put_run(after);
            return draft.finish(CommandReply::Done);
        }
        _ => {}
    }
    draft.finish(CommandReply::Unchanged)
}

/// Whether a run was ended because the state of its program was unknown.
fn is_lost(run: &Run) -> bool {
    matches!(run.reason, Some(Reason::NodeLost | Reason::StartUnknown | Reason::KeeperLost))
}

/// Stops a run whose lock could not be renewed. Another holder may have the lock by now.
fn unlocked(view: &DecisionView<'_>, run: &Run) -> Result<DecidedUnit, Halt> {
    let mut draft = UnitDraft::new(view);
    // A run that is stopping or has no lock needs no stop.
    if run.ending.is_some() || run.state == State::Stopping || run.lock.is_none() {
        return draft.finish(CommandReply::Unchanged);
    }
    let mut after = run.clone();
    run_lifecycle::request_stop(&draft, &mut after, Cause::Curtailed, Reason::LockLost, view.stamp.actor.clone())?;
    draft.put_run(after);
    draft.finish(CommandReply::Done)
}

/// The program is running. A node that finds it after a restart becomes its owner with its new incarnation.
fn launched(view: &DecisionView<'_>, run: &Arc<Run>) -> Result<DecidedUnit, Halt> {
    let now = view.stamp.at;
    let mut draft = UnitDraft::new(view);
    let mut after = (**run).clone();
    after.owner = Some(view.stamp.owner);
    match run::next(run.state, Cause::Launched) {
        Ok(run::TransitionEffect::Enter(_)) => {
            run_lifecycle::enter_state(&mut after, Cause::Launched, now, view.stamp.actor.clone(), "")?;
            let timeout = after.terms.timeout.map(|timeout| now.plus(timeout));
            after.due = [timeout, after.terms.stop_at].into_iter().flatten().min();
        }
        // The run was stopped before its program was launched, so the stop is sent now.
        Ok(_) if after.owner == run.owner => draft.emit(Effect::Stop { run: Arc::clone(run) }),
        // The record with the new owner owes the stop.
        Ok(_) | Err(_) => {}
    }
    if after == **run {
        return draft.finish(CommandReply::Unchanged);
    }
    draft.put_run(after);
    draft.finish(CommandReply::Done)
}

/// The service has started the task of the run, or its durable task exists. From now on the task is polled, by this node or by one that takes the run
/// over. If the run was asked to stop, the record owes the stop, which cancels the task.
fn task_started(view: &DecisionView<'_>, run: &Arc<Run>, task: &str) -> Result<DecidedUnit, Halt> {
    let draft = UnitDraft::new(view);
    let state = match run.work.as_ref().filter(|_| run.remote_task().is_none()) {
        Some(ResolvedProgram::Remote(remote)) => {
            match remote::bind_task(remote, task, remote::run_bindings(run, view.world.bindings())) {
                Ok(state) => state,
                Err(error) => return gone(view, run, Reason::Unbound(error.to_string())),
            }
        }
        Some(ResolvedProgram::Task(_)) => ServiceState { task: Some(task.to_owned()), ..ServiceState::default() },
        _ => return draft.finish(CommandReply::Unchanged),
    };
    let mut draft = draft;
    let mut after = (**run).clone();
    after.service = Some(Box::new(state));
    draft.put_run(after);
    draft.finish(CommandReply::Done)
}

/// The program has reported how far it is.
fn progressed(view: &DecisionView<'_>, run: &Run, progress: &PluginProgress) -> Result<DecidedUnit, Halt> {
    let mut draft = UnitDraft::new(view);
    let known = run.service.as_ref().and_then(|service| service.progress.as_ref());
    if known.is_some_and(|known| known.reported == *progress) {
        return draft.finish(CommandReply::Unchanged);
    }
    let mut after = run.clone();
    let progress = RunProgress { at: draft.at(), reported: progress.clone() };
    after.service.get_or_insert_default().progress = Some(progress);
    draft.put_run(after);
    draft.finish(CommandReply::Done)
}

/// The program has ended. If it was asked to stop, that is the reason; its exit decides about success.
fn ended(view: &DecisionView<'_>, run: &Run, verdict: &ExitOutcome) -> Result<DecidedUnit, Halt> {
    let mut run = run.clone();
    run.exit = verdict.exit;
    run.written.clone_from(&verdict.written);
    if let Some(response) = &verdict.response {
        run.service.get_or_insert_default().response = Some((**response).clone());
    }
    let told = run.ending.clone();
    let cause = match &verdict.reason {
        _ if verdict.success => Cause::Succeeded,
        // It ended without a result of its own.
        Some(reason) if told.is_none() && !reason.fits(State::Failure) => Cause::Broke,
        _ => Cause::Failed,
    };
    over(view, &run, cause, told.or_else(|| verdict.reason.clone()), Actor::Program)
}

/// Ends a run whose node was lost.
pub(super) fn lost(view: &DecisionView<'_>, run: &Run) -> Result<DecidedUnit, Halt> {
    gone(view, run, if run.state == State::Starting { Reason::StartUnknown } else { Reason::NodeLost })
}

/// Ends a run whose program is gone without a result. A run that was asked to stop fails for that reason, so that it is
/// not retried as an error.
fn gone(view: &DecisionView<'_>, run: &Run, reason: Reason) -> Result<DecidedUnit, Halt> {
    let actor = view.stamp.actor.clone();
    match run.ending.clone() {
        Some(told) => over(view, run, Cause::Failed, Some(told), actor),
        None => over(view, run, Cause::Broke, Some(reason), actor),
    }
}

fn over(
    view: &DecisionView<'_>,
    run: &Run,
    cause: Cause,
    reason: Option<Reason>,
    actor: Actor,
) -> Result<DecidedUnit, Halt> {
    let mut draft = UnitDraft::new(view);
    let mut state = draft.job_state(&run.job);
    let run = finish_run::finish_as(&mut draft, run.clone(), &mut state, cause, reason, actor)?;
    draft.put_run(run);
    draft.put_state(state);
    draft.finish(CommandReply::Done)
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;
    use crate::record::{Actor, OutputSummary};
    use crate::run::State;

    #[test]
    fn reports_end_runs_with_their_reason() {
        play(
            "00:00 put j overlap allow
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 launched #1
                #1 00:01 running
            00:02 ended #1 code 0
                #1 00:01 success
            00:03 run j
                #2 00:03 starting, → #2
            00:03 ended #2 code 3
                #2 00:03 failure: exit code 3
            00:04 run j
                #3 00:04 starting, → #3
            00:04 unlaunched #3 no such file
                #3 00:04 error: not launched: no such file
            00:05 run j
                #4 00:05 starting, → #4
            00:05 lost #4
                #4 00:05 error: start unknown
            00:06 run j
                #5 00:06 starting, → #5
            00:06 launched #5
                #5 00:06 running
            00:06 lost #5
                #5 00:06 error: node lost",
        );
    }

    #[test]
    fn runs_of_a_lost_keeper_end_in_error() {
        play(
            "00:00 put j overlap allow; lock
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 keeper-lost #1
                #1 00:01 error: keeper lost
            00:02 run j
                #2 00:02 starting, → #2
            00:02 launched #2
                #2 00:02 running
            00:02 keeper-lost #2
                #2 00:02 error: keeper lost
            00:03 run j
                #3 00:03 starting, → #3
            00:03 launched #3
                #3 00:03 running
            00:03 stop #3
                #3 00:03 stopping (stopped)
            00:04 keeper-lost #3
                #3 00:03 failure: stopped
            00:04 keeper-lost #3
                unchanged
            00:04 ended #3 yes
                unchanged
            00:05 run j at=00:09
                #4 00:09 scheduled, → #4
            00:05 keeper-lost #4
                unchanged
            00:06 run j
                #5 00:06 starting, → #5
            00:06 node 2.1
            00:06 keeper-lost #5
                unchanged",
        );
    }

    #[test]
    fn progress_of_a_program_is_kept_with_its_run() {
        let bench = play(
            "00:00 put j overlap allow
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 launched #1
                #1 00:01 running
            00:02 progress #1 40 half of it
                #1 00:01 running
            00:03 progress #1 40 half of it
                unchanged
            00:04 progress #1 60 more
                #1 00:01 running
            00:05 ended #1 yes
                #1 00:01 success
            00:06 progress #1 100 done
                unchanged",
        );
        let run = bench.run(None, 1);
        let progress = run.service.as_ref().and_then(|service| service.progress.clone()).expect("it is kept");
        assert_eq!(progress.reported.to_string(), "60 %, more");
    }

    /// The run was to stop and its program is gone, so it counts as stopped, whatever was lost.
    #[test]
    fn stopped_run_that_is_lost_fails_without_retry() {
        let bench = play(
            "00:00 put j overlap allow; retry 3; retry_on_error; on_lost_retry
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 stop #1
                #1 00:01 stopping (stopped)
            00:01 keeper-lost #1
                #1 00:01 failure: stopped
            00:02 run j
                #2 00:02 starting, → #2
            00:02 launched #2
                #2 00:02 running
            00:02 stop #2
                #2 00:02 stopping (stopped)
            00:02 signal #2 SIGKILL
                #2 00:02 stopping (killed), (signal #2 SIGKILL)
            00:02 lost #2
                #2 00:02 failure: killed
            00:03 run j
                #3 00:03 starting, → #3
            00:03 stop #3
                #3 00:03 stopping (stopped)
            00:03 unlaunched #3 no such file
                #3 00:03 failure: stopped
            00:04 run j
                #4 00:04 starting, → #4
            00:04 keeper-lost #4
                #4 00:04 error: keeper lost, #5 00:04 attempt 2 scheduled",
        );
        // The program did not report it.
        assert_eq!(bench.run(None, 1).log.last().map(|entry| &entry.actor), Some(&Actor::Recovery));
    }

    #[test]
    fn replaced_or_timed_out_run_that_is_lost_keeps_its_reason() {
        play(
            "00:00 put j overlap replace; retry 2; retry_on_error; timeout 1m
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 launched #1
                #1 00:01 running
            00:01:30 run j
                #1 00:01 stopping (replaced), #2 00:01:30 waiting, → #2
            00:01:31 lost #1
                #1 00:01 failure: replaced
            00:01:31 wake #2
                #2 00:01:30 starting
            00:01:31 launched #2
                #2 00:01:30 running
            00:02:31 wake #2
                #2 00:01:30 stopping (timeout)
            00:02:32 lost #2
                #2 00:01:30 failure: timeout, #3 00:01:30 attempt 2 scheduled",
        );
    }

    #[test]
    fn output_is_not_copied_to_retries_and_reruns() {
        let bench = play(
            "00:00 put j overlap allow; retry 2
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 ended #1 code 3 wrote 70000 no rows/giving up
                #1 00:01 failure: exit code 3, #2 00:01 attempt 2 scheduled
            00:02 rerun #1
                #3 00:01 starting, → #3
            00:02 ended #3 yes
                #3 00:01 success
            00:02 mark #1 success
                #1 00:01 success: by operator",
        );
        let [first, retry, rerun] = [1, 2, 3].map(|number| bench.run(None, number));
        let tail = ["no rows", "giving up"].map(str::to_owned).to_vec();
        assert_eq!(first.written, Some(OutputSummary { bytes: 70_000, tail, stderr: None }));
        assert_eq!((&retry.written, &retry.exit), (&None, &None));
        assert_eq!((&rerun.written, &rerun.exit), (&None, &None));
    }

    #[test]
    fn stop_gives_the_reason_and_exit_the_state() {
        play(
            "00:00 put j overlap allow
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 launched #1
                #1 00:01 running
            00:02 stop #1
                #1 00:01 stopping (stopped)
            00:02 ended #1 code 0
                #1 00:01 success: stopped
            00:03 run j
                #2 00:03 starting, → #2
            00:03 stop #2
                #2 00:03 stopping (stopped)
            00:03 launched #2
                (stop #2), unchanged
            00:03 signal #2 SIGKILL
                #2 00:03 stopping (killed), (signal #2 SIGKILL)
            00:04 ended #2 code 137
                #2 00:03 failure: killed",
        );
    }

    #[test]
    fn outdated_reports_change_nothing() {
        play(
            "00:00 put j overlap queue
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 run j at=00:09
                #2 00:09 scheduled, → #2
            00:02 run j
                #3 00:02 waiting, → #3
            00:02 launched #2
                unchanged
            00:02 lost #2
                unchanged
            00:02 ended #3 yes
                unchanged
            00:02 launched #1
                #1 00:01 running
            00:02 launched #1
                unchanged
            00:02 unlaunched #1 what
                unchanged
            00:02 node 2.1
            00:02 ended #1 no
                unchanged
            00:02 lost #1
                unchanged
            00:02 node 1.1
            00:02 ended #1 yes
                #1 00:01 success
            00:02 ended #1 no
                unchanged
            00:02 lost #1
                unchanged
            00:02 launched #1
                unchanged
            00:02 ended #0 yes
                unchanged",
        );
    }

    #[test]
    fn restarted_node_adopts_its_programs() {
        let bench = play(
            "00:00 put j overlap allow; timeout 5m
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 launched #1
                #1 00:01 running
            00:02 node 1.2
            00:02 launched #1
                #1 00:01 running
            00:02 launched #1
                unchanged
            00:03 stop #1
                #1 00:01 stopping (stopped)
            00:03 node 1.3
            00:03 launched #1
                #1 00:01 stopping (stopped)",
        );
        let run = bench.run(None, 1);
        assert_eq!(run.owner, Some(bench.me));
        let states: Vec<State> = run.log.iter().map(|entry| entry.state).collect();
        assert_eq!(states, [State::Waiting, State::Starting, State::Running, State::Stopping]);
    }

    #[test]
    fn failed_run_is_retried_until_attempts_are_used_up() {
        let bench = play(
            "00:00 put j @every 1h; overlap skip; retry 3
                next 01:00, job r1
            01:00 due
                #1 01:00 starting, next 02:00
            01:01 ended #1 no
                #1 01:00 failure: exit code 1, #2 01:00 attempt 2 scheduled
            01:01 run j
                #3 01:01 skipped: overlap, → #3
            01:01:10 wake #2
                #2 01:00 attempt 2 starting
            01:02 ended #2 no
                #2 01:00 attempt 2 failure: exit code 1, #4 01:00 attempt 3 scheduled
            01:02:20 wake #4
                #4 01:00 attempt 3 starting
            01:03 ended #4 no
                #4 01:00 attempt 3 failure: exit code 1
            01:03 run j
                #5 01:03 starting, → #5",
        );
        let [first, second, third] = [1, 2, 4].map(|number| bench.run(None, number));
        assert_eq!((first.retried_by, second.retry_of), (Some(second.id), Some(first.id)));
        assert_eq!((second.retried_by, third.retry_of, third.retried_by), (Some(third.id), Some(second.id), None));
    }

    #[test]
    fn stopped_run_is_not_retried() {
        play(
            "00:00 put j overlap allow; retry 3; timeout 1m; grace 0s
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 launched #1
                #1 00:01 running
            00:01 stop #1
                #1 00:01 stopping (stopped)
            00:01 ended #1 no
                #1 00:01 failure: stopped
            00:02 run j
                #2 00:02 starting, → #2
            00:02 launched #2
                #2 00:02 running
            00:03 wake #2
                #2 00:02 stopping (timeout)
            00:03 ended #2 no
                #2 00:02 failure: timeout, #3 00:02 attempt 2 scheduled
            00:03 skip #3 enough
                #3 00:02 attempt 2 skipped: by operator: enough
            00:03 run j
                #4 00:03 starting, → #4
            00:03 lost #4
                #4 00:03 error: start unknown
            00:04 put j retry 3; retry_on_error; on_lost_retry
                job r2
            00:04 run j
                #5 00:04 starting, → #5
            00:04 lost #5
                #5 00:04 error: start unknown, #6 00:04 attempt 2 scheduled",
        );
    }

    /// Without a next time, the schedule would stop for good. Instead, it retries until the calendar is available.
    #[test]
    fn after_previous_schedule_survives_a_missing_calendar() {
        play(
            "00:00 calendar open Mon-Fri
            00:00 put j with 10m interval; calendar open
                next 00:10, job r1
            00:10 due
                #1 00:10 starting, follows its run
            00:11 calendar open
            00:12 ended #1 yes
                #1 00:10 success, next 00:22
            00:22 due
                (plan 00:22 at 00:23)
            00:23 calendar open Mon-Fri
            00:23 due
                #2 00:22 starting, follows its run
            00:24 ended #2 yes
                #2 00:22 success, next 00:34",
        );
    }

    #[test]
    fn after_previous_schedule_counts_from_the_last_attempt() {
        play(
            "00:00 put j with 10m interval; retry 2
                next 00:10, job r1
            00:10 due
                #1 00:10 starting, follows its run
            00:11 ended #1 no
                #1 00:10 failure: exit code 1, #2 00:10 attempt 2 scheduled, follows its run
            00:11:10 wake #2
                #2 00:10 attempt 2 starting
            00:12 ended #2 no
                #2 00:10 attempt 2 failure: exit code 1, next 00:22",
        );
    }
}

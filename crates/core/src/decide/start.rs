//! Starts a run by hand. A scheduled run no longer waits for its time; a waiting run no longer waits for its conditions
//! and for other runs. A lock is never ignored.

use super::admission;
use super::draft::UnitDraft;
use super::placement;
use super::pools;
use super::run_lifecycle::{self, BY_START};
use crate::decision::{CommandReply, DecidedUnit, Rejection};
use crate::ids::RunId;
use crate::record::{JobRecord, JobState, Run};
use crate::run::{self, State};
use crate::view::{DecisionView, Halt};

pub(super) fn decide(view: &DecisionView<'_>, id: RunId) -> Result<DecidedUnit, Halt> {
    let run = run_lifecycle::find_run(view, id)?;
    run::next(run.state, BY_START)?;
    let mut draft = UnitDraft::new(view);
    let (job, mut state) = (view.job(&run.job), draft.job_state(&run.job));
    view.require_loaded()?;
    let job = job.filter(|job| job.uid == run.uid).ok_or_else(|| Rejection::NoJob(run.job.clone()))?;
    let run = match run.state {
        State::Scheduled => at_once(&mut draft, (*run).clone(), &mut state, &job)?,
        _ => past_everything(&mut draft, (*run).clone(), &mut state, &job)?,
    };
    draft.put_run(run);
    draft.put_state(state);
    draft.finish(CommandReply::Done)
}

/// Ends the wait for the run's time. If other runs block it, it waits and is never skipped. A run with another target
/// waits for that node.
fn at_once(draft: &mut UnitDraft<'_>, mut run: Run, state: &mut JobState, job: &JobRecord) -> Result<Run, Halt> {
    run_lifecycle::enter_state(&mut run, BY_START, draft.at(), draft.view.stamp.actor.clone(), "")?;
    let admission = admission::admission_of(draft, &run, state, job, false);
    run_lifecycle::apply_admission(draft, run, state, job, admission)
}

/// Starts a waiting run unless its lock is held or this node may not run it.
fn past_everything(draft: &mut UnitDraft<'_>, run: Run, state: &mut JobState, job: &JobRecord) -> Result<Run, Halt> {
    placement::reject_elsewhere(draft.view, &run, Some(job))?;
    run_lifecycle::reject_if_locked(draft, &run)?;
    if state.active.len() >= JobState::ACTIVE_MAX && !state.is_active(run.id) {
        return Err(Rejection::TooManyActive(job.id.clone()).into());
    }
    if let Some(pool) = pools::full(draft, &job.job) {
        return Err(Rejection::PoolFull(pool).into());
    }
    run_lifecycle::start_run(draft, run, state, Some(job), BY_START, draft.view.stamp.actor.clone())
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;
    use crate::run::State;

    #[test]
    fn start_ends_the_wait_for_time_then_for_other_runs() {
        let bench = play(
            "00:00 put j overlap queue
                job r1
            00:01 run j at=02:00
                #1 02:00 scheduled, → #1
            00:02 start #1
                #1 02:00 starting
            00:03 run j at=02:00
                #2 02:00 scheduled, → #2
            00:04 start #2
                #2 02:00 waiting
            00:05 start #2
                #2 02:00 starting
            00:06 start #2
                ! the run has already started (starting)",
        );
        let log = |number| -> Vec<String> {
            let run = bench.run(None, number);
            run.log.iter().map(|entry| format!("{} {}", entry.state, entry.actor)).collect()
        };
        assert_eq!(log(1), ["scheduled operator anna", "waiting operator anna", "starting operator anna"]);
        assert_eq!(log(2), ["scheduled operator anna", "waiting operator anna", "starting operator anna"]);
        assert_eq!(bench.run(None, 2).entered(State::Starting), Some(bench.now.minus(one_minute())));
    }

    fn one_minute() -> cronhold_schedule::Span {
        cronhold_schedule::Span::from_secs(60)
    }

    #[test]
    fn start_is_rejected_while_the_lock_is_held() {
        let bench = play(
            "00:00 put j overlap queue; lock
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 run j
                #2 00:02 waiting, → #2
            00:02 run j at=01:00
                #3 01:00 scheduled, → #3
            00:03 start #3
                #3 01:00 waiting
            00:03 ended #1 yes
                #1 00:01 success
            00:03 start #3
                #3 01:00 starting",
        );
        let mut bench = bench;
        let holder = bench.run(None, 3).id;
        assert_eq!(bench.happens("start #2"), [format!("! the lock `j` is held by run {holder}")]);
        assert_eq!(bench.run(None, 2).state, State::Waiting);
    }

    /// The holder is not a run of ours, so there is no hint to stop it.
    #[test]
    fn start_is_rejected_while_a_foreign_node_holds_the_lock() {
        play(
            "00:00 put j overlap queue; lock
                job r1
            00:00 foreign-run j web-1 00:00
            00:00 hold j their-token
                nothing
            00:01 run j
                #1 00:01 waiting, (wake #1 00:01:01), → #1
            00:02 start #1
                ! the lock `j` is held by a foreign node",
        );
    }

    #[test]
    fn start_ignores_pause_and_conditions() {
        play(
            "00:00 put j overlap skip; needs window 12:00 13:00; retry 2
                job r1
            00:01 run j
                #1 00:01 waiting, → #1
            00:02 start #1
                #1 00:01 starting
            00:03 ended #1 no
                #1 00:01 failure: exit code 1, #2 00:01 attempt 2 scheduled
            00:03 pause j
                job paused
            00:03 start #2
                #2 00:01 attempt 2 waiting
            00:03 start #2
                #2 00:01 attempt 2 starting",
        );
    }

    /// A run that an operator started starts when its lock is free, like a manual run.
    #[test]
    fn started_run_that_waits_for_a_lock_ignores_the_pause() {
        play(
            "00:00 put j @every 1h; overlap allow; lock l; retry 2
                next 01:00, job r1
            00:00 put k overlap allow; lock l
                job r1
            01:00 due
                j#1 01:00 starting, j next 02:00
            01:01 ended j#1 no
                j#1 01:00 failure: exit code 1, j#2 01:00 attempt 2 scheduled
            01:02 run k
                k#1 01:02 starting, → #1
            01:02 pause j
                job paused
            01:03 start j#2
                j#2 01:00 attempt 2 waiting
            01:04 ended k#1 yes
                k#1 01:02 success
            01:04 wake j#2
                j#2 01:00 attempt 2 starting",
        );
    }

    #[test]
    fn start_is_rejected_on_an_ineligible_node_and_without_a_job() {
        play(
            "00:00 put j overlap queue; nodes gpu
                job r1
            00:01 run j
                #1 00:01 waiting, → #1
            00:02 start #1
                ! this node does not have the labels that `j` requires
            00:02 label gpu
            00:02 remove j
                job gone, (wake #1 00:02)
            00:02 start #1
                ! there is no job `j`
            00:02 wake #1
                #1 00:01 skipped: job removed",
        );
    }
}

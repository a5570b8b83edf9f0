//! Skips a run that has not started, by hand.

use super::draft::UnitDraft;
use super::finish_run;
use super::run_lifecycle;
use crate::decision::{CommandReply, DecidedUnit};
use crate::ids::RunId;
use crate::run::{self, Cause, Operation, Reason};
use crate::view::{DecisionView, Halt};

pub(super) fn decide(view: &DecisionView<'_>, id: RunId, why: &str) -> Result<DecidedUnit, Halt> {
    let cause = Cause::By(Operation::Skip);
    let run = run_lifecycle::find_run(view, id)?;
    run::next(run.state, cause)?;
    let mut draft = UnitDraft::new(view);
    let mut state = draft.job_state(&run.job);
    let reason = Reason::ByOperator(why.to_owned());
    let run = finish_run::finish(&mut draft, (*run).clone(), &mut state, cause, Some(reason))?;
    draft.put_run(run);
    draft.put_state(state);
    draft.finish(CommandReply::Done)
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    #[test]
    fn skip_ends_scheduled_and_waiting_runs() {
        let bench = play(
            "00:00 put j overlap queue; retry 2
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 run j
                #2 00:02 waiting, → #2
            00:02 run j at=01:00
                #3 01:00 scheduled, → #3
            00:03 skip #2
                #2 00:02 skipped: by operator
            00:03 skip #3 not today
                #3 01:00 skipped: by operator: not today
            00:04 ended #1 no
                #1 00:01 failure: exit code 1, #4 00:01 attempt 2 scheduled
            00:04 skip #4
                #4 00:01 attempt 2 skipped: by operator
            00:04 skip #4
                ! the run is finished (skipped)
            00:05 run j
                #5 00:05 starting, → #5
            00:05 skip #5
                ! the run has already started (starting)",
        );
        let state = bench.job_states().next().expect("a state");
        assert_eq!((state.kept.skipped, state.kept.failure, state.queue.len(), state.active.len()), (3, 1, 0, 1));
    }

    /// A schedule that counts from the retry continues when the retry is skipped.
    #[test]
    fn skipped_retry_lets_its_schedule_go_on() {
        play(
            "00:00 put j with 10m interval; retry 2
                next 00:10, job r1
            00:10 due
                #1 00:10 starting, follows its run
            00:11 ended #1 no
                #1 00:10 failure: exit code 1, #2 00:10 attempt 2 scheduled, follows its run
            00:12 skip #2
                #2 00:10 attempt 2 skipped: by operator, next 00:22",
        );
    }
}

//! Notices that a run is late: it has not finished when the time `late` of its job has passed. That is an entry in its log,
//! which causes the actions of the event, and happens once for all attempts of a run.

use cronhold_schedule::Instant;

use super::draft::UnitDraft;
use crate::decision::{CommandReply, DecidedUnit, Effect};
use crate::job::Job;
use crate::record::{Actor, Run, Transition, TransitionKind};
use crate::view::{DecisionView, Halt};
use crate::when::When;

/// When a run that is created now is late; `None` if its job does not say. The time counts from the nominal time, or from
/// the creation of the run if that is later: a run that catches up, or that an operator requests, gets all of it.
pub(super) fn late_at(job: &Job, nominal: Instant, created: Instant) -> Option<Instant> {
    job.late.map(|late| nominal.max(created).plus(late))
}

/// Whether a run is late, and that was not noticed yet.
pub(super) fn is_late(run: &Run, now: Instant) -> bool {
    !run.state.is_finished() && run.late_at.is_some_and(|at| at <= now)
}

/// Records that a run is late. Nothing else about the run changes.
pub(super) fn note(view: &DecisionView<'_>, run: &Run) -> Result<DecidedUnit, Halt> {
    let mut late = run.clone();
    let message = late.late_at.take().map(|at| format!("not finished by {at}")).unwrap_or_default();
    let entry = Transition::entered(view.stamp.at, run.state, Actor::Limit).with_message(message);
    late.log.push(Transition { kind: TransitionKind::Late, ..entry });
    // The commit compares the job, whose actions the entry causes.
    view.job(&run.job);
    let mut draft = UnitDraft::new(view);
    if !run.state.has_program() {
        // What made this check necessary may also have made its start possible.
        draft.emit(Effect::Wake { run: run.id, at: When::Now });
    }
    draft.put_run(late);
    draft.finish(CommandReply::Done)
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::{instant, play};

    #[test]
    fn run_is_late_once_in_any_unfinished_state() {
        play(
            "00:00 put j @every 1h; late 10m; timeout 2h; overlap queue; on late run alarm
                next 01:00, job r1
            01:00 due
                #1 01:00 starting, next 02:00
            01:00 launched #1
                #1 01:00 running
            01:09 wake
            01:10 wake
                #1 01:00 running, action 0 late run alarm at node 1.1
            02:00 due
                #2 02:00 waiting, next 03:00
            02:10 wake
                #2 02:00 waiting, action 0 late run alarm at node 1.1, (wake #2 now)
            02:11 ended #1 yes
                #1 01:00 success
            02:12 wake
                #2 02:00 starting
            02:12 ended #2 yes
                #2 02:00 success
            ",
        );
    }

    #[test]
    fn attempts_of_a_run_are_late_together_and_a_finished_run_is_not() {
        play(
            "00:00 put j @every 1h; late 1m; retry 3; on late run alarm
                next 01:00, job r1
            01:00 due
                #1 01:00 starting, next 02:00
            01:00:55 ended #1 no
                #1 01:00 failure: exit code 1, #2 01:00 attempt 2 scheduled
            01:01 wake
                #2 01:00 attempt 2 scheduled, action 0 late run alarm at node 1.1, (wake #2 now)
            01:01:10 wake
                #2 01:00 attempt 2 starting
            01:01:20 ended #2 no
                #2 01:00 attempt 2 failure: exit code 1, #3 01:00 attempt 3 scheduled
            01:02 wake
                #3 01:00 attempt 3 starting
            01:30 wake #3
                (adopt #3), (wake #3 01:30:10), unchanged
            01:31 ended #3 yes
                #3 01:00 attempt 3 success
            02:00 due
                #4 02:00 starting, next 03:00
            02:00:59 ended #4 yes
                #4 02:00 success
            02:02 wake
            ",
        );
    }

    /// A run that catches up, that was requested for a time, or that repeats another gets the whole time.
    #[test]
    fn time_counts_from_the_creation_of_a_run_that_is_created_after_its_time() {
        let bench = play(
            "00:00 put j @every 1h; late 10m; overlap allow; catch_up last 9h
                next 01:00, job r1
            01:30 due
                next 02:00, backlog 01:00–01:00 of 1
            01:31 catch up
                #1 01:00 starting, backlog gone
            01:40 wake #1
                (adopt #1), (wake #1 01:40:10), unchanged
            01:41 run j at=05:00
                #2 05:00 scheduled, → #2
            01:41 ended #1 yes
                #1 01:00 success
            01:50 rerun #1
                #3 01:00 starting, → #3",
        );
        let late_at = |number| bench.run(None, number).late_at;
        assert_eq!([late_at(2), late_at(3)], ["05:10", "02:00"].map(|at| Some(instant(at))));
    }

    /// The node of a program notices that it is late. Any node does for a run without a program, and only one of them.
    #[test]
    fn one_node_notices_a_late_run() {
        play(
            "00:00 put j @every 1h; late 10m; overlap queue; on late run alarm
                next 01:00, job r1
            01:00 due
                #1 01:00 starting, next 02:00
            01:00 launched #1
                #1 01:00 running
            01:10 node 2.1
            01:10 wake #1
                unchanged
            01:10 node 1.2
            01:10 wake #1
                #1 01:00 running, action 0 late run alarm at node 1.2
            02:00 due
                #2 02:00 waiting, next 03:00
            02:10 node 2.1
            02:10 wake #2
                #2 02:00 waiting, action 0 late run alarm at node 2.1, (wake #2 now)
            02:10 node 1.2
            02:10 wake #2
                #2 02:00 waiting
            02:11 wake #2
                #2 02:00 waiting
            ",
        );
    }
}

//! Stops a run by hand: signal, grace period, SIGKILL. The node that has the program acts on the changed record.

use super::draft::UnitDraft;
use super::run_lifecycle;
use crate::decision::{CommandReply, DecidedUnit};
use crate::ids::RunId;
use crate::run::{Cause, Operation, Reason};
use crate::view::{DecisionView, Halt};

pub(super) fn decide(view: &DecisionView<'_>, id: RunId) -> Result<DecidedUnit, Halt> {
    let mut run = (*run_lifecycle::find_run(view, id)?).clone();
    let mut draft = UnitDraft::new(view);
    let cause = Cause::By(Operation::Stop);
    run_lifecycle::request_stop(&draft, &mut run, cause, Reason::Stopped, view.stamp.actor.clone())?;
    draft.put_run(run);
    draft.finish(CommandReply::Done)
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;
    use crate::decision::Effect;

    #[test]
    fn stop_sends_signal_then_sigkill_after_grace() {
        let mut bench = play(
            "00:00 put j overlap allow; grace 20s
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 launched #1
                #1 00:01 running
            00:03 stop #1
                #1 00:01 stopping (stopped)
            00:03 stop #1
                ! the run is already being stopped
            00:03:19 wake #1
                (wake #1 00:03:20), unchanged
            00:03:20 wake #1
                #1 00:01 stopping (stopped), (signal #1 SIGKILL), (adopt #1)
            00:04 run j at=01:00
                #2 01:00 scheduled, → #2
            00:04 stop #2
                ! the run has not started yet (scheduled)
            00:04 run j
                #3 00:04 starting, → #3",
        );
        bench.effects.clear();
        bench.happens("stop #3");
        assert!(bench.effects.iter().any(|effect| matches!(effect, Effect::Stop { run } if run.number.0 == 3)));
        // Another node stores the request; the owner of the run carries it out.
        bench.happens("run j x");
        bench.happens("node 2.1");
        bench.effects.clear();
        assert_eq!(bench.happens("stop #4"), ["#4 00:04 stopping (stopped)"]);
        assert_eq!(bench.effects, []);
    }
}

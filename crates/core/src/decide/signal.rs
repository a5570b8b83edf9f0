//! Sends a signal to a run's program. SIGKILL is stored as the reason of the run's end, so any node can request it, and
//! the run is checked until its program is gone. Other signals are not stored, so only the node that has the program
//! can send them.

use cronhold_schedule::Span;

use super::draft::UnitDraft;
use super::run_lifecycle::{self, KILL_WAIT};
use crate::decision::{CommandReply, DecidedUnit, Effect, Rejection};
use crate::ids::{NodeId, RunId};
use crate::record::Run;
use crate::run::{self, Cause, Operation, Reason};
use crate::signal::Signal;
use crate::view::{DecisionView, Halt};

pub(super) fn decide(view: &DecisionView<'_>, id: RunId, signal: Signal) -> Result<DecidedUnit, Halt> {
    let run = run_lifecycle::find_run(view, id)?;
    let operation = if signal == Signal::KILL { Operation::Kill } else { Operation::Signal };
    run::next(run.state, Cause::By(operation))?;
    let elsewhere = elsewhere(view, &run);
    let mut draft = UnitDraft::new(view);
    match (operation, elsewhere) {
        (Operation::Kill, _) => {
            let mut run = (*run).clone();
            run.ending = Some(Reason::Killed);
            // The node that has the program checks the run at once and kills it.
            let wait = if elsewhere.is_some() { Span::ZERO } else { KILL_WAIT };
            run.due = Some(draft.at().plus(wait));
            draft.put_run(run);
        }
        (_, Some(node)) => return Err(Rejection::RunsElsewhere(node).into()),
        (_, None) => {}
    }
    if elsewhere.is_none() {
        draft.emit(Effect::Signal { run: id, signal });
    }
    draft.finish(CommandReply::Done)
}

/// The node that has the program of a run, if it is not this one.
pub(super) fn elsewhere(view: &DecisionView<'_>, run: &Run) -> Option<NodeId> {
    run.owner.map(|owner| owner.node).filter(|node| *node != view.stamp.owner.node)
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    #[test]
    fn signal_reaches_only_running_programs() {
        play(
            "00:00 put j overlap allow; timeout 1h
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:01 signal #1 SIGHUP
                ! the run has not started yet (starting)
            00:01 signal #1 SIGKILL
                ! the run has not started yet (starting)
            00:02 launched #1
                #1 00:01 running
            00:02 signal #1 SIGHUP
                (signal #1 SIGHUP)
            00:03 signal #1 SIGKILL
                #1 00:01 running (killed), (signal #1 SIGKILL)
            00:03:09 wake #1
                (wake #1 00:03:10), unchanged
            00:03:10 wake #1
                #1 00:01 running (killed), (signal #1 SIGKILL), (adopt #1)
            00:03:11 ended #1 no
                #1 00:01 failure: killed
            00:04 signal #1 SIGHUP
                ! the run is finished (failure)",
        );
    }

    /// The node that has the program reads the stored request and kills the program.
    #[test]
    fn sigkill_from_another_node_is_stored_and_other_signals_rejected() {
        play(
            "00:00 there 1 2
            00:00 put j overlap allow
                job r1
            00:01 run j
                #1 00:01 starting, → #1
            00:02 launched #1
                #1 00:01 running
            00:03 node 2.1
            00:03 signal #1 SIGHUP
                ! the program of this run is on node 00000000000000000000000000000001
            00:03 signal #1 SIGKILL
                #1 00:01 running (killed)
            00:03 node 1.1
            00:03 wake
                #1 00:01 running (killed), (signal #1 SIGKILL), (adopt #1)
            00:03:01 ended #1 no
                #1 00:01 failure: killed",
        );
    }
}

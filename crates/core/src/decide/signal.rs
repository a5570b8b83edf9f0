//! Someone wants to send a signal to a run's program. SIGKILL is more than that: the run was killed, and is looked at
//! until it is gone.

use super::draft::Draft;
use super::motion::{self, KILL_WAIT};
use crate::decision::{Answer, Done, Effect};
use crate::ids::RunId;
use crate::run::{self, Cause, Operation, Reason};
use crate::signal::Signal;
use crate::view::{Halt, View};

pub(super) fn decide(view: &View<'_>, id: RunId, signal: Signal) -> Result<Done, Halt> {
    let run = motion::addressed(view, id)?;
    let operation = if signal == Signal::KILL { Operation::Kill } else { Operation::Signal };
    run::next(run.state, Cause::By(operation))?;
    let mut draft = Draft::new(view);
    if operation == Operation::Kill {
        let mut run = (*run).clone();
        run.ending = Some(Reason::Killed);
        run.due = Some(draft.at().plus(KILL_WAIT));
        draft.put_run(run);
    }
    draft.also(Effect::Signal { run: id, signal });
    draft.done(Answer::Done)
}

#[cfg(test)]
mod tests {
    use crate::decide::testing::play;

    #[test]
    fn goes_to_what_runs() {
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
}

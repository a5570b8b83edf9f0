//! The state table of runs: every state, every cause, one match. A cause that the match does not name is rejected with
//! a reason for the caller. The diagram in the documentation is generated from the same match.

use std::fmt;

use super::State;

/// What can change the state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Its time has come.
    Due,
    /// All conditions hold and nothing blocks it.
    Ready,
    /// A policy skips it.
    Withheld,
    /// Its program has started.
    Launched,
    /// It has to stop early: a timeout, a stop schedule, a newer run, or a lock that cannot be renewed.
    Curtailed,
    /// Its program succeeded.
    Succeeded,
    /// Its program failed.
    Failed,
    /// Cronhold, the configuration or the machine failed: its program could not be resolved or started, or its node or
    /// keeper was lost.
    Broke,
    /// An operator did something with it.
    By(Operation),
}

/// What an operator can do with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// End the wait for its time, or else for its conditions.
    Start,
    /// End a scheduled or waiting run without running its program.
    Skip,
    /// Stop its program: signal, grace period, SIGKILL to the whole process group.
    Stop,
    /// Send its program a signal.
    Signal,
    /// Send SIGKILL to its process group.
    Kill,
    /// Change its finished state.
    Mark(State),
    /// Create a new run like it.
    Rerun,
}

/// What a cause does to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransitionEffect {
    /// The run enters a state.
    Enter(State),
    /// The run stays in its state; the signal is sent to its process group.
    Send,
    /// The run stays as it is; a new run that refers to it is created.
    Create,
}

/// Why an operation or a report is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TransitionRejection {
    /// The run has finished.
    #[error("the run is finished ({0})")]
    Finished(State),
    /// The run has not finished.
    #[error("the run is not finished yet ({0})")]
    Unfinished(State),
    /// The run has no program yet that could be stopped or signalled.
    #[error("the run has not started yet ({0})")]
    NotStarted(State),
    /// The run has already started.
    #[error("the run has already started ({0})")]
    Started(State),
    /// The run is already being stopped.
    #[error("the run is already being stopped")]
    Stopping,
    /// A mark must be a finished state.
    #[error("a run cannot be marked {0}")]
    MarkUnfinished(State),
    /// The run already has that state.
    #[error("the run is already marked {0}")]
    MarkSame(State),
    /// A report arrived late or twice. It is ignored, and no user sees this message.
    #[error("a run that is {0} cannot be {1}")]
    OutOfTurn(State, &'static str),
}

/// What a cause does to a run in a state. This is the whole table.
pub const fn next(state: State, cause: Cause) -> Result<TransitionEffect, TransitionRejection> {
    use Cause::{Broke, By, Curtailed, Due, Failed, Launched, Ready, Succeeded, Withheld};
    use Operation::{Kill, Mark, Rerun, Signal, Skip, Start, Stop};
    use State::{Error, Failure, Running, Scheduled, Skipped, Starting, Stopping, Success, Waiting};
    use TransitionEffect::{Create, Enter, Send};
    match (state, cause) {
        // The program has not started.
        (Scheduled, Due | By(Start)) => Ok(Enter(Waiting)),
        (Waiting, Ready | By(Start)) => Ok(Enter(Starting)),
        (Scheduled | Waiting, Withheld | By(Skip)) => Ok(Enter(Skipped)),

        // The program has started. It may end before the run is `running`: launch and exit can arrive in one report, or
        // the report of the launch can be lost. The program's result counts in both cases.
        (Starting, Launched) => Ok(Enter(Running)),
        (Starting | Running, Curtailed | By(Stop)) => Ok(Enter(Stopping)),
        (Starting | Running | Stopping, Succeeded) => Ok(Enter(Success)),
        (Starting | Running | Stopping, Failed) => Ok(Enter(Failure)),
        // The stop was requested before the launch; only now is there a program to send the signal to.
        (Stopping, Launched) => Ok(Send),
        (Running | Stopping, By(Signal | Kill)) => Ok(Send),

        // Cronhold, the configuration or the machine can fail in every unfinished state.
        (Scheduled | Waiting | Starting | Running | Stopping, Broke) => Ok(Enter(Error)),

        // The run has finished.
        (Success | Failure | Error | Skipped, By(Rerun)) => Ok(Create),
        (Success | Failure | Error | Skipped, By(Mark(to))) if !to.is_finished() => {
            Err(TransitionRejection::MarkUnfinished(to))
        }
        (Success | Failure | Error | Skipped, By(Mark(to))) if to as u8 == state as u8 => {
            Err(TransitionRejection::MarkSame(to))
        }
        (Success | Failure | Error | Skipped, By(Mark(to))) => Ok(Enter(to)),

        // Everything else is rejected.
        (Success | Failure | Error | Skipped, By(_)) => Err(TransitionRejection::Finished(state)),
        (_, By(Mark(_) | Rerun)) => Err(TransitionRejection::Unfinished(state)),
        (_, By(Start | Skip)) => Err(TransitionRejection::Started(state)),
        (Stopping, By(Stop)) => Err(TransitionRejection::Stopping),
        (_, By(Stop | Signal | Kill)) => Err(TransitionRejection::NotStarted(state)),
        (_, _) => Err(TransitionRejection::OutOfTurn(state, cause.name())),
    }
}

impl Cause {
    /// Every cause; a mark once for each state.
    pub fn all() -> impl Iterator<Item = Self> {
        let automatic = [
            Self::Due,
            Self::Ready,
            Self::Withheld,
            Self::Launched,
            Self::Curtailed,
            Self::Succeeded,
            Self::Failed,
            Self::Broke,
        ];
        automatic.into_iter().chain(Operation::all().map(Self::By))
    }

    /// The name in documents and messages, one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Ready => "ready",
            Self::Withheld => "withheld",
            Self::Launched => "launched",
            Self::Curtailed => "curtailed",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Broke => "broken",
            Self::By(operation) => operation.name(),
        }
    }
}

impl Operation {
    /// Every operation; a mark once for each state.
    pub fn all() -> impl Iterator<Item = Self> {
        let plain = [Self::Start, Self::Skip, Self::Stop, Self::Signal, Self::Kill, Self::Rerun];
        plain.into_iter().chain(State::ALL.into_iter().map(Self::Mark))
    }

    /// The name of the command that users write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Skip => "skip",
            Self::Stop => "stop",
            Self::Signal => "signal",
            Self::Kill => "kill",
            Self::Mark(_) => "mark",
            Self::Rerun => "rerun",
        }
    }
}

impl TransitionRejection {
    /// What the caller can do instead; `None` if there is nothing to suggest.
    pub const fn hint(self) -> Option<&'static str> {
        match self {
            Self::Finished(_) => Some("`rerun` creates a new run like it; `mark` changes its finished state"),
            Self::Unfinished(State::Scheduled | State::Waiting) => Some("`skip` finishes it without running"),
            Self::Unfinished(State::Stopping) => Some("wait until it ends, or `kill` it"),
            Self::Unfinished(_) => Some("wait until it ends, or `stop` it"),
            Self::NotStarted(State::Starting) => Some("its program is starting; `stop` ends it in any case"),
            Self::NotStarted(_) => Some("`skip` keeps it from starting"),
            Self::Stopping | Self::Started(State::Stopping) => Some("`kill` ends it at once"),
            Self::Started(_) => Some("`stop` ends it"),
            Self::MarkUnfinished(_) => Some("marks are success, failure, error and skipped"),
            Self::MarkSame(_) | Self::OutOfTurn(..) => None,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mark(to) => write!(f, "mark {to}"),
            plain => f.write_str(plain.name()),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::By(operation) => write!(f, "{operation}"),
            plain => f.write_str(plain.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The whole table as text, so that a test fails on every change of the match.
    const ALLOWED: &str = "
        scheduled: due → waiting, withheld → skipped, broken → error, start → waiting, skip → skipped
        waiting: ready → starting, withheld → skipped, broken → error, start → starting, skip → skipped
        starting: launched → running, curtailed → stopping, succeeded → success, failed → failure, broken → error
        starting: stop → stopping
        running: curtailed → stopping, succeeded → success, failed → failure, broken → error
        running: stop → stopping, signal → (send), kill → (send)
        stopping: launched → (send), succeeded → success, failed → failure, broken → error
        stopping: signal → (send), kill → (send)
        success: rerun → (create), mark failure → failure, mark error → error, mark skipped → skipped
        failure: rerun → (create), mark success → success, mark error → error, mark skipped → skipped
        error: rerun → (create), mark success → success, mark failure → failure, mark skipped → skipped
        skipped: rerun → (create), mark success → success, mark failure → failure, mark error → error";

    fn allowed() -> BTreeMap<(String, String), String> {
        let mut table = BTreeMap::new();
        for line in ALLOWED.lines().filter(|line| !line.trim().is_empty()) {
            let (state, moves) = line.trim().split_once(": ").expect("a state");
            for one in moves.split(", ") {
                let (cause, effect) = one.split_once(" → ").expect("a move");
                assert_eq!(table.insert((state.to_owned(), cause.to_owned()), effect.to_owned()), None, "{one}");
            }
        }
        table
    }

    #[test]
    fn only_listed_transitions_are_allowed() {
        let mut left = allowed();
        for state in State::ALL {
            for cause in Cause::all() {
                let found = next(state, cause).ok().map(|effect| match effect {
                    TransitionEffect::Enter(to) => to.to_string(),
                    TransitionEffect::Send => "(send)".to_owned(),
                    TransitionEffect::Create => "(create)".to_owned(),
                });
                let expected = left.remove(&(state.to_string(), cause.to_string()));
                assert_eq!(found, expected, "{state}: {cause}");
            }
        }
        assert_eq!(left, BTreeMap::new(), "unknown state or cause");
    }

    #[test]
    fn rejections_have_a_message_and_a_hint() {
        use Operation::{Kill, Mark, Rerun, Signal, Skip, Start, Stop};
        for (state, operation, message, hint) in [
            (State::Success, Stop, "the run is finished (success)", "`rerun` creates"),
            (State::Skipped, Start, "the run is finished (skipped)", "`rerun` creates"),
            (State::Running, Rerun, "the run is not finished yet (running)", "`stop` it"),
            (State::Waiting, Mark(State::Success), "the run is not finished yet (waiting)", "`skip` finishes"),
            (State::Waiting, Stop, "the run has not started yet (waiting)", "`skip` keeps"),
            (State::Starting, Kill, "the run has not started yet (starting)", "`stop` ends it in any case"),
            (State::Scheduled, Signal, "the run has not started yet (scheduled)", "`skip` keeps"),
            (State::Running, Start, "the run has already started (running)", "`stop` ends it"),
            (State::Stopping, Skip, "the run has already started (stopping)", "`kill` ends it"),
            (State::Stopping, Stop, "the run is already being stopped", "`kill` ends it"),
            (State::Error, Mark(State::Running), "a run cannot be marked running", "marks are success"),
            (State::Error, Mark(State::Error), "the run is already marked error", ""),
        ] {
            let rejection = next(state, Cause::By(operation)).expect_err(message);
            assert_eq!(rejection.to_string(), message);
            assert!(rejection.hint().unwrap_or("").contains(hint), "{message}: {:?}", rejection.hint());
        }
        let stale = next(State::Success, Cause::Launched).expect_err("finished");
        assert_eq!(stale.to_string(), "a run that is success cannot be launched");
    }

    #[test]
    fn only_a_mark_leaves_a_finished_state() {
        for state in State::ALL.into_iter().filter(|state| state.is_finished()) {
            for cause in Cause::all() {
                if let Ok(TransitionEffect::Enter(_)) = next(state, cause) {
                    assert!(matches!(cause, Cause::By(Operation::Mark(_))), "{state}: {cause}");
                }
            }
        }
    }

    #[test]
    fn every_unfinished_state_can_end() {
        for state in State::ALL.into_iter().filter(|state| !state.is_finished()) {
            assert_eq!(next(state, Cause::Broke), Ok(TransitionEffect::Enter(State::Error)));
            let operations = Operation::all().filter(|operation| next(state, Cause::By(*operation)).is_ok()).count();
            assert!(operations > 0, "no operation applies to a run that is {state}");
        }
    }
}

//! Runs for tests.

use cronhold_core::record::{Actor, ResolvedProcess, ResolvedProgram, Run, Transition};
use cronhold_core::{JobId, JobUid, RunId, RunNumber, State};
use cronhold_schedule::Instant;

/// A run of a process that is about to start.
pub(crate) fn run(process: ResolvedProcess) -> Run {
    run_of(ResolvedProgram::Process(Box::new(process)), &[(State::Starting, 100)])
}

/// A run with a log of states, and the seconds at which it entered them.
pub(crate) fn run_of(work: ResolvedProgram, log: &[(State, i64)]) -> Run {
    let at = Instant::from_secs;
    let transition = |(state, secs)| Transition::entered(at(secs), state, Actor::Schedule);
    let (id, job) = (RunId::from_random(at(0), [7; 10]), JobId::parse("nothing").expect("an id"));
    Run {
        state: log.last().expect("a state").0,
        work: Some(work),
        log: log.iter().copied().map(transition).collect(),
        ..Run::blank(id, RunNumber(1), job, JobUid::from_bits(1), at(0))
    }
}

//! What conditions ask about: a job with certain args, and how its runs ended last. It outlives the runs, which are
//! trimmed.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use crate::args::Args;
use crate::ids::{JobId, RunId};
use crate::run::State;

/// The latest outcomes of a job with certain args, each finished state apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The job.
    pub job: JobId,
    /// The args.
    pub args: Args,
    /// Last success.
    pub success: Option<Outcome>,
    /// Last failure.
    pub failure: Option<Outcome>,
    /// Last error.
    pub error: Option<Outcome>,
    /// Last skip.
    pub skipped: Option<Outcome>,
}

/// One outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The run.
    pub run: RunId,
    /// When it ended.
    pub at: Instant,
}

impl Identity {
    /// Nothing has ended yet.
    pub fn new(job: JobId, args: Args) -> Self {
        Self { job, args, success: None, failure: None, error: None, skipped: None }
    }

    /// The latest outcome in a state.
    pub fn outcome(&self, state: State) -> Option<Outcome> {
        match state {
            State::Success => self.success,
            State::Failure => self.failure,
            State::Error => self.error,
            State::Skipped => self.skipped,
            _ => None,
        }
    }

    /// Puts in an outcome. States that are not final are no outcomes.
    pub fn set(&mut self, state: State, outcome: Option<Outcome>) {
        match state {
            State::Success => self.success = outcome,
            State::Failure => self.failure = outcome,
            State::Error => self.error = outcome,
            State::Skipped => self.skipped = outcome,
            _ => {}
        }
    }

    /// When anything ended last.
    pub fn touched(&self) -> Option<Instant> {
        [self.success, self.failure, self.error, self.skipped].into_iter().flatten().map(|outcome| outcome.at).max()
    }
}

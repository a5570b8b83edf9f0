//! The latest outcomes of a job with certain args, which conditions of other runs depend on. They outlive the runs,
//! which are pruned.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use crate::args::Args;
use crate::ids::{JobId, RunId};
use crate::run::State;

/// The latest outcomes of a job with certain args, one for each finished state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The name of the job.
    pub job: JobId,
    /// The args of the runs.
    pub args: Args,
    /// The latest run that ended in `success`.
    pub success: Option<LatestOutcome>,
    /// The latest run that ended in `failure`.
    pub failure: Option<LatestOutcome>,
    /// The latest run that ended in `error`.
    pub error: Option<LatestOutcome>,
    /// The latest run that was skipped.
    pub skipped: Option<LatestOutcome>,
}

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestOutcome {
    /// The id of the run.
    pub run: RunId,
    /// When it ended, or was marked as ended.
    pub at: Instant,
}

impl Identity {
    /// An identity without outcomes.
    pub fn new(job: JobId, args: Args) -> Self {
        Self { job, args, success: None, failure: None, error: None, skipped: None }
    }

    /// The latest outcome in a state.
    pub fn outcome(&self, state: State) -> Option<LatestOutcome> {
        match state {
            State::Success => self.success,
            State::Failure => self.failure,
            State::Error => self.error,
            State::Skipped => self.skipped,
            _ => None,
        }
    }

    /// Sets the outcome of a finished state. Other states are ignored.
    pub fn set(&mut self, state: State, outcome: Option<LatestOutcome>) {
        match state {
            State::Success => self.success = outcome,
            State::Failure => self.failure = outcome,
            State::Error => self.error = outcome,
            State::Skipped => self.skipped = outcome,
            _ => {}
        }
    }

    /// When the latest of all outcomes happened; `None` if there is none.
    pub fn touched(&self) -> Option<Instant> {
        [self.success, self.failure, self.error, self.skipped].into_iter().flatten().map(|outcome| outcome.at).max()
    }
}

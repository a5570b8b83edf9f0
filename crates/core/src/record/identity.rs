//! The latest outcomes of a job with certain args, which conditions of other runs depend on. They outlive the runs,
//! which are pruned. Those of runs without args are in the state of the job, which every end of a run writes anyway.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use crate::args::Args;
use crate::ids::{JobId, RunId};
use crate::run::State;

/// The latest outcomes of a job with certain args.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The name of the job.
    pub job: JobId,
    /// The args of the runs.
    pub args: Args,
    #[serde(flatten)]
    pub outcomes: LatestOutcomes,
}

/// The latest outcome in each finished state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LatestOutcomes {
    /// The latest run that ended in `success`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<LatestOutcome>,
    /// The latest run that ended in `failure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<LatestOutcome>,
    /// The latest run that ended in `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<LatestOutcome>,
    /// The latest run that was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<LatestOutcome>,
    /// How the latest outcomes follow each other, which filters of actions read; `None` before the first outcome, and in
    /// records of versions that did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streak: Option<OutcomeStreak>,
}

/// How many outcomes of a kind there are in a row. Runs that were skipped are not outcomes: they neither count nor end a
/// row. A success ends the rows of failures and errors, and each of these ends the row of successes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeStreak {
    /// The latest outcome: `success`, `failure` or `error`.
    pub last: State,
    /// Successes since the latest failure or error.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub successes: u32,
    /// Failures since the latest success.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// Errors since the latest success.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errors: u32,
}

impl OutcomeStreak {
    /// The outcomes up to the next one; `None` if its state is not an outcome.
    pub fn next(before: Option<Self>, outcome: State) -> Option<Self> {
        let Self { successes, failures, errors, .. } =
            before.unwrap_or(Self { last: outcome, successes: 0, failures: 0, errors: 0 });
        let (successes, failures, errors) = match outcome {
            State::Success => (successes.saturating_add(1), 0, 0),
            State::Failure => (0, failures.saturating_add(1), errors),
            State::Error => (0, failures, errors.saturating_add(1)),
            _ => return None,
        };
        Some(Self { last: outcome, successes, failures, errors })
    }
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
        Self { job, args, outcomes: LatestOutcomes::default() }
    }
}

impl LatestOutcomes {
    /// The latest outcome in a state.
    pub fn of(&self, state: State) -> Option<LatestOutcome> {
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

    /// The latest of all outcomes: the state, and when it happened; `None` if there is none.
    pub fn last(&self) -> Option<(State, Instant)> {
        let of = |state| self.of(state).map(|outcome| (state, outcome.at));
        [State::Success, State::Failure, State::Error, State::Skipped]
            .into_iter()
            .filter_map(of)
            .max_by_key(|(_, at)| *at)
    }

    /// When the latest of all outcomes happened; `None` if there is none.
    pub fn touched(&self) -> Option<Instant> {
        [self.success, self.failure, self.error, self.skipped].into_iter().flatten().map(|outcome| outcome.at).max()
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

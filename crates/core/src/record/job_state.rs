//! What is known of a job's runs as a set, so that no decision depends on a scan. It outlives the job: a job that is
//! made again goes on counting.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use super::{Pauses, Queued, Run};
use crate::ids::{JobId, NodeId, RunId, RunNumber};
use crate::run::State;

/// The runs of a job as a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobState {
    /// The job.
    pub job: JobId,
    /// The number of the next run.
    pub next_number: u64,
    /// Runs that count for overlap: those that have a program, and retries that wait for their time.
    pub active: Vec<ActiveRun>,
    /// Runs that wait to start, the oldest first.
    pub queue: Vec<Queued>,
    /// Whether it is paused.
    pub pauses: Pauses,
    /// How many finished runs there are in each state.
    pub kept: Kept,
    /// Cursors that are gone had come this far: a schedule that returns does not go back behind it.
    pub floor: Option<Instant>,
}

/// A run that counts for overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveRun {
    /// The run.
    pub run: RunId,
    /// Stands for its args: equal args have equal numbers.
    pub args: u64,
    /// The only node that may start it, when there is one. Runs of different nodes are not in each other's way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<NodeId>,
}

/// How many finished runs of a job are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Kept {
    /// Successes.
    pub success: u32,
    /// Failures.
    pub failure: u32,
    /// Errors.
    pub error: u32,
    /// Skips.
    pub skipped: u32,
}

impl JobState {
    /// So many runs of one job may be active at once; more wait. Keeps the record small.
    pub const ACTIVE_MAX: usize = 1_000;
    /// So many runs of one job may wait to start, whatever its overlap allows; more are skipped.
    pub const QUEUE_MAX: usize = 1_000;

    /// A job that never ran.
    pub fn new(job: JobId) -> Self {
        Self {
            job,
            next_number: 1,
            active: Vec::new(),
            queue: Vec::new(),
            pauses: Pauses::default(),
            kept: Kept::default(),
            floor: None,
        }
    }

    /// The number of a new run.
    pub fn take_number(&mut self) -> RunNumber {
        let number = RunNumber(self.next_number);
        self.next_number += 1;
        number
    }

    /// Counts a run as active, once.
    pub fn activate(&mut self, run: &Run) {
        if !self.is_active(run.id) {
            self.active.push(ActiveRun { run: run.id, args: run.args.digest(), target: run.target });
        }
    }

    /// Whether a run counts as active.
    pub fn is_active(&self, run: RunId) -> bool {
        self.active.iter().any(|active| active.run == run)
    }

    /// Whether a run waits to start.
    pub fn is_queued(&self, run: RunId) -> bool {
        self.queue.iter().any(|queued| queued.run == run)
    }

    /// The runs that wait to start, the oldest first.
    pub fn queued(&self) -> impl Iterator<Item = RunId> {
        self.queue.iter().map(|queued| queued.run)
    }

    /// Takes a run out of everything: it has ended.
    pub fn forget(&mut self, run: RunId) {
        self.active.retain(|active| active.run != run);
        self.dequeue(run);
    }

    /// Takes a run out of the queue: it waits no longer.
    pub fn dequeue(&mut self, run: RunId) {
        self.queue.retain(|queued| queued.run != run);
    }
}

impl Kept {
    /// The count of a finished state.
    pub fn of(&mut self, state: State) -> Option<&mut u32> {
        match state {
            State::Success => Some(&mut self.success),
            State::Failure => Some(&mut self.failure),
            State::Error => Some(&mut self.error),
            State::Skipped => Some(&mut self.skipped),
            _ => None,
        }
    }
}

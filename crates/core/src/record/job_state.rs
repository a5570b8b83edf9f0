//! The set of a job's runs as one record, so that no decision depends on a scan. It outlives the job: a job that is
//! created again continues its run numbers.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use super::{PauseState, QueuedRun, Run};
use crate::ids::{JobId, NodeId, RunId, RunNumber};
use crate::run::State;

/// The runs of a job as a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobState {
    /// The name of the job.
    pub job: JobId,
    /// The number of the next run.
    pub next_number: u64,
    /// Runs that count for overlap: those that have a program, and retries that wait for their time.
    pub active: Vec<ActiveRun>,
    /// Runs that wait to start, the oldest first.
    pub queue: Vec<QueuedRun>,
    /// The current and the last pause of the job.
    pub pauses: PauseState,
    /// How many finished runs there are in each state.
    pub kept: KeptCounts,
    /// How far the cursors of removed schedules had come. A schedule that is added again does not begin before it.
    pub floor: Option<Instant>,
}

/// A run that counts for overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveRun {
    /// The id of the run.
    pub run: RunId,
    /// A digest of its args: equal args have equal digests.
    pub args: u64,
    /// The only node that may start it, for a job with `nodes: each`. Runs with different targets do not overlap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<NodeId>,
}

/// How many finished runs of a job are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeptCounts {
    /// Runs in state `success`.
    pub success: u32,
    /// Runs in state `failure`.
    pub failure: u32,
    /// Runs in state `error`.
    pub error: u32,
    /// Runs in state `skipped`, spans included.
    pub skipped: u32,
}

impl JobState {
    /// The most runs of one job that may be active at once; more wait. This bounds the size of the record.
    pub const ACTIVE_MAX: usize = 1_000;
    /// The most runs of one job that may wait to start, whatever its overlap policy allows; more are skipped.
    pub const QUEUE_MAX: usize = 1_000;

    /// The state of a job that never ran.
    pub fn new(job: JobId) -> Self {
        Self {
            job,
            next_number: 1,
            active: Vec::new(),
            queue: Vec::new(),
            pauses: PauseState::default(),
            kept: KeptCounts::default(),
            floor: None,
        }
    }

    /// Allocates the number of a new run.
    pub fn take_number(&mut self) -> RunNumber {
        let number = RunNumber(self.next_number);
        self.next_number += 1;
        number
    }

    /// Adds a run to the active ones, unless it is one already.
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

    /// Removes a run that has ended from the active ones and from the queue.
    pub fn forget(&mut self, run: RunId) {
        self.active.retain(|active| active.run != run);
        self.dequeue(run);
    }

    /// Removes a run from the queue.
    pub fn dequeue(&mut self, run: RunId) {
        self.queue.retain(|queued| queued.run != run);
    }
}

impl KeptCounts {
    /// The count of a finished state; `None` for other states.
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

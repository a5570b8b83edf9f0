//! The set of a job's runs as one record, so that no decision depends on a scan. It outlives the job for a while: a job
//! that is created again in that time continues its run numbers.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use super::{LatestOutcomes, PauseState, QueuedRun, Run};
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
    /// When the job was removed; `None` while it exists, and if an older version removed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Instant>,
    /// Among the runs that have ended, the one that started last; `None` if none has started. It may be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<LatestRun>,
    /// The latest outcomes of runs without args; those of other runs are in identities. `None` if the record is from a
    /// version that had identities for all runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<LatestOutcomes>,
    /// Whether triggers are pending, so that a change of this record may make a batch of them possible.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_triggers: bool,
    /// The rename that is under way; `None` if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renaming: Option<RenameProgress>,
}

/// A rename of a job whose finished runs and outcomes have not all moved to the new name yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RenameProgress {
    /// They come from this name, where outcomes that have not moved yet are read.
    From(JobId),
    /// They go to this name.
    To(JobId),
}

/// The run of a job that started last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestRun {
    /// The id of the run.
    pub run: RunId,
    /// When it started, or when it ended in error without a start.
    pub at: Instant,
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
            removed: None,
            latest: None,
            outcomes: Some(LatestOutcomes::default()),
            has_triggers: false,
            renaming: None,
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

    /// Records a run that has ended as the latest one, unless one that started later has ended already. A run that was
    /// skipped has not started.
    pub fn observe_end(&mut self, run: &Run) {
        let Some(at) = run.started().or_else(|| run.finished().filter(|_| run.state == State::Error)) else { return };
        if self.latest.is_none_or(|latest| latest.at <= at) {
            self.latest = Some(LatestRun { run: run.id, at });
        }
    }

    /// Removes a run from the queue.
    pub fn dequeue(&mut self, run: RunId) {
        self.queue.retain(|queued| queued.run != run);
    }
}

impl KeptCounts {
    /// Whether a run is stored that started, or ended in error.
    pub fn has_started(self) -> bool {
        [self.success, self.failure, self.error].iter().any(|count| *count > 0)
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::JobUid;
    use crate::record::{Actor, Transition};

    /// A run of an old occurrence that starts now counts, and one that was skipped does not.
    #[test]
    fn latest_run_is_the_one_that_started_last() {
        let job = JobId::parse("j").expect("a name");
        let mut state = JobState::new(job.clone());
        for (number, log, expected) in [
            (1, &[(1, State::Waiting), (2, State::Skipped)][..], None),
            (2, &[(3, State::Starting), (4, State::Running), (50, State::Failure)], Some(2)),
            (3, &[(9, State::Skipped)], Some(2)),
            (4, &[(20, State::Starting), (21, State::Success)], Some(4)),
            (5, &[(19, State::Starting), (90, State::Success)], Some(4)),
            (6, &[(20, State::Starting), (91, State::Success)], Some(6)),
            (7, &[(95, State::Scheduled), (96, State::Error)], Some(7)),
            (8, &[(97, State::Scheduled), (98, State::Skipped)], Some(7)),
        ] {
            let id = |number: u8| RunId::from_random(Instant::from_secs(-i64::from(number)), [number; 10]);
            let mut run =
                Run::blank(id(number), RunNumber(number.into()), job.clone(), JobUid::from_bits(1), id(1).time());
            run.log = log
                .iter()
                .map(|(at, state)| Transition::entered(Instant::from_secs(*at), *state, Actor::Program))
                .collect();
            run.state = log.last().expect("a state").1;
            state.observe_end(&run);
            assert_eq!(state.latest.map(|latest| latest.run), expected.map(id), "{number}");
        }
    }
}

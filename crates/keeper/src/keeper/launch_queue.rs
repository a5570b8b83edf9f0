//! Launches that the daemon requested and that are not in the journal yet.

use std::collections::{BTreeSet, VecDeque};

use crate::protocol::{ProgramLaunch, RunKey};

/// Launches that may wait. Beyond that the keeper does not read from the daemon, which waits in turn.
const QUEUE_MAX: usize = 4_096;
/// Programs that are started in one turn, so that exits and stops do not wait for all that are due at once.
pub(crate) const BATCH: usize = 64;

/// Launches in order of arrival.
///
/// Invariant: `runs` holds exactly the runs of `launches`.
#[derive(Debug, Default)]
pub(super) struct LaunchQueue {
    launches: VecDeque<ProgramLaunch>,
    runs: BTreeSet<RunKey>,
}

impl LaunchQueue {
    pub(super) fn push(&mut self, launch: ProgramLaunch) {
        self.runs.insert(launch.run);
        self.launches.push_back(launch);
    }

    pub(super) fn contains(&self, run: RunKey) -> bool {
        self.runs.contains(&run)
    }

    /// Removes a launch. Returns whether it was there.
    pub(super) fn remove(&mut self, run: RunKey) -> bool {
        let was_queued = self.runs.remove(&run);
        if was_queued {
            self.launches.retain(|launch| launch.run != run);
        }
        was_queued
    }

    /// Extends the lease of a launch that waits. Whether it has ended is checked when the launch is taken.
    pub(super) fn extend(&mut self, run: RunKey, kill_at: u64) {
        if self.runs.contains(&run)
            && let Some(launch) = self.launches.iter_mut().find(|launch| launch.run == run)
        {
            launch.kill_at = launch.kill_at.max(Some(kill_at));
        }
    }

    /// Takes the launches of one turn.
    pub(super) fn take_batch(&mut self) -> Vec<ProgramLaunch> {
        let count = self.launches.len().min(BATCH);
        let batch: Vec<ProgramLaunch> = self.launches.drain(..count).collect();
        for launch in &batch {
            self.runs.remove(&launch.run);
        }
        batch
    }

    /// Removes all launches and returns their runs.
    pub(super) fn clear(&mut self) -> BTreeSet<RunKey> {
        self.launches.clear();
        std::mem::take(&mut self.runs)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.launches.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.launches.len() >= QUEUE_MAX
    }
}

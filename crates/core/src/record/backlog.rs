//! Occurrences that were missed and are made up for, beside the live schedule and at a limited rate.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use super::ScheduleId;
use crate::ids::JobId;
use crate::policy::catch_up::Stretch;

/// What is left to catch up of one schedule. It is gone when nothing is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backlog {
    /// Whose.
    pub job: JobId,
    /// Of which schedule.
    pub schedule: ScheduleId,
    /// The first occurrence that was to be caught up.
    pub from: Instant,
    /// The next to be started.
    pub position: Instant,
    /// The last.
    pub to: Instant,
    /// How many there were in all from the first to the last.
    pub count: u32,
    /// When it is looked at again.
    pub due: Instant,
    /// What was missed later, while this was still being caught up. What lies between has outcomes already, so these
    /// cannot be one stretch with the first.
    #[serde(default)]
    pub later: Vec<Stretch>,
}

impl Backlog {
    /// So many stretches wait at most; then the oldest is given up and recorded as missed. Keeps the record small.
    pub const LATER_MAX: usize = 16;

    /// Whether an occurrence of the schedule is still to be started.
    pub fn holds(&self, at: Instant) -> bool {
        (self.position <= at && at <= self.to)
            || self.later.iter().any(|stretch| stretch.from <= at && at <= stretch.to)
    }

    /// What is left, the oldest first. The count of a stretch that has begun is that of its whole.
    pub fn rest(&self) -> impl Iterator<Item = Stretch> + '_ {
        let first = Stretch { from: self.position, to: self.to, count: self.count };
        std::iter::once(first).chain(self.later.iter().copied())
    }
}

//! Backlogs: missed occurrences that are caught up alongside the live schedule, at a limited rate.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use super::ScheduleId;
use crate::ids::JobId;
use crate::policy::catch_up::CountedRange;

/// The occurrences of one schedule that are still to be caught up. It is deleted when none is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backlog {
    pub job: JobId,
    /// The schedule within the job.
    pub schedule: ScheduleId,
    /// The first occurrence that was to be caught up.
    pub from: Instant,
    /// The next occurrence to be started.
    pub position: Instant,
    /// The last occurrence of the first range.
    pub to: Instant,
    /// How many occurrences the first range had in all.
    pub count: u32,
    /// When the backlog is checked next.
    pub due: Instant,
    /// Ranges that were missed later, while the first was still being caught up. Occurrences in between have outcomes
    /// already, so they cannot be merged.
    #[serde(default)]
    pub later: Vec<CountedRange>,
}

impl Backlog {
    /// The most later ranges. When there are more, the oldest is recorded as missed. This bounds the record's size.
    pub const LATER_MAX: usize = 16;

    /// Whether an occurrence of the schedule is still to be started.
    pub fn holds(&self, at: Instant) -> bool {
        (self.position <= at && at <= self.to)
            || self.later.iter().any(|stretch| stretch.from <= at && at <= stretch.to)
    }

    /// The ranges that are left, the oldest first. The count of a range that was started covers the whole range.
    pub fn rest(&self) -> impl Iterator<Item = CountedRange> + '_ {
        let first = CountedRange { from: self.position, to: self.to, count: self.count };
        std::iter::once(first).chain(self.later.iter().copied())
    }
}

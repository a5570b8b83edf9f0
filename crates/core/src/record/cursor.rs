//! Cursors: how far each schedule has come. The cursor makes an occurrence start at most once: only its stored `next`
//! can be claimed, and the commit that claims it compares the cursor and advances it.

use std::sync::Arc;

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use super::{ClaimedRanges, ScheduleId};
use crate::ids::{JobId, RunId};
use crate::run::Reason;

/// How far a schedule of a job has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub job: JobId,
    /// The schedule within the job.
    pub schedule: ScheduleId,
    /// When the schedule was created, enabled again or changed, also by other zone data. Every occurrence after this
    /// time has an outcome or is pending. It distinguishes a lost occurrence from one that never existed.
    pub since: Instant,
    /// The latest occurrence that has an outcome or a backlog.
    pub last: Option<Instant>,
    /// Which occurrences were claimed. Unlike `last` they stay if the clock is set back, and unlike runs they are never
    /// deleted. Empty for schedules that are not ordered by time.
    pub claimed: ClaimedRanges,
    /// The only occurrence that can be claimed.
    pub next: Option<Instant>,
    /// When `next` is due: its nominal time plus its jitter.
    pub wake: Option<Instant>,
    /// The revision of the job that `next` was computed from. A node with another revision may not claim.
    pub revision: u32,
    /// The release of the zone data that `next` was computed from, such as `2026e`. Empty if the schedule does not
    /// depend on zone data.
    pub zones: Arc<str>,
    /// How many runs a schedule that counts from the previous run has created. It identifies a late report of an
    /// earlier run.
    pub generation: u32,
    /// The run whose end sets `next`, for a schedule that counts from the previous run.
    pub follows: Option<RunId>,
    /// Whether each start of a node is an occurrence.
    pub at_start: bool,
    /// The latest skips in a row for one reason.
    pub streak: Option<SkipStreak>,
}

/// Skips in a row for one reason. The first few are runs of their own, then one span is extended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkipStreak {
    /// The common reason.
    pub reason: Reason,
    /// How many occurrences it has so far.
    pub count: u32,
    /// The span that the skips after the first few are recorded in.
    pub span: Option<RunId>,
}

impl SkipStreak {
    /// How many skips in a row are recorded as runs of their own.
    pub const SINGLE: u32 = 20;
}

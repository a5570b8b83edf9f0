//! How far a schedule has come. The cursor is what makes an occurrence start at most once: only its stored `next` can
//! be claimed, and the commit that claims it compares the cursor and moves it on.

use std::sync::Arc;

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use super::ScheduleId;
use crate::ids::{JobId, RunId};
use crate::run::Reason;

/// How far a schedule of a job has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Whose.
    pub job: JobId,
    /// Of which schedule.
    pub schedule: ScheduleId,
    /// Every occurrence after this has an outcome or is still to come: the moment at which the schedule was made,
    /// enabled again, or came to yield other occurrences. Without it nobody could tell an occurrence that was lost
    /// from one that never was.
    pub since: Instant,
    /// The latest occurrence that has an outcome or a backlog.
    pub last: Option<Instant>,
    /// The only occurrence that can be claimed.
    pub next: Option<Instant>,
    /// When that is due: its time and its jitter.
    pub wake: Option<Instant>,
    /// The revision of the job that `next` was computed from. A node that knows another one may not claim.
    pub revision: u32,
    /// The version of the zone data that `next` was computed from, such as `2026e`.
    pub zones: Arc<str>,
    /// How often a schedule that counts from the previous run has made one. Part of nothing but this record: it tells
    /// a late answer of an earlier run apart.
    pub generation: u32,
    /// The run whose end sets `next`, for a schedule that counts from the previous run.
    pub follows: Option<RunId>,
    /// Whether each start of a node is an occurrence.
    pub at_start: bool,
    /// Skips in a row for one reason.
    pub streak: Option<SkipStreak>,
}

/// Skips in a row for one reason. The first few are runs of their own, then one span is extended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkipStreak {
    /// Why.
    pub reason: Reason,
    /// How many so far.
    pub count: u32,
    /// The run that stands for the rest.
    pub span: Option<RunId>,
}

impl SkipStreak {
    /// So many skips in a row are runs of their own.
    pub const SINGLE: u32 = 20;
}

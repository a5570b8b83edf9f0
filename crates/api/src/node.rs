//! Nodes, and how the one that answers is doing.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Its identity.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Which start of it this is.
    pub incarnation: u32,
    /// When it started.
    #[schema(value_type = String, format = DateTime)]
    pub since: Instant,
    /// When it was heard of last.
    #[schema(value_type = String, format = DateTime)]
    pub beat: Instant,
    /// What jobs can ask for.
    pub labels: Vec<String>,
    /// Whether it starts nothing any more.
    pub draining: bool,
    /// Whether it was not heard of for so long that it counts as gone.
    pub gone: bool,
    /// By how many milliseconds its clock is ahead of the store's time, or behind when it is less than zero; absent when
    /// that is not known.
    pub skew_ms: Option<i64>,
    /// Runs that it has and that are not over; of more than 1,000 it is that number.
    pub runs: u64,
    /// Whether it is the one that answers.
    pub is_this: bool,
}

/// A node that was asked to drain, or to start things again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Drained {
    /// Whether it was otherwise before.
    pub changed: bool,
    /// The node as it is now.
    pub node: Node,
}

/// How a daemon is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// Whether all is well.
    pub ok: bool,
    /// Whether it has taken up everything that was stored, and starts what is due.
    pub ready: bool,
    /// What is wrong.
    pub trouble: Option<String>,
    /// Stored records that could not be read since the daemon started; of more than 1,000 it is that number.
    #[serde(default)]
    pub unreadable_records: u64,
    /// Its version.
    pub version: String,
}

//! Nodes as other nodes see them.

use std::collections::BTreeSet;

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use crate::ids::NodeId;

/// One running `cronhold up`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Its id, stored in its data directory.
    pub id: NodeId,
    /// Its name, which users see.
    pub name: String,
    /// How often it has started; each start has a new number.
    pub incarnation: u32,
    /// When it started last.
    pub since: Instant,
    /// The time of its last heartbeat.
    pub beat: Instant,
    /// When it counts as gone, unless it sends a heartbeat before.
    pub gone: Instant,
    /// The labels that jobs can require.
    pub labels: BTreeSet<String>,
    /// Whether it is draining and starts nothing.
    pub draining: bool,
    /// How many microseconds its wall clock is ahead of the store's clock; negative if it is behind. Known only on a
    /// shared store, and only shown: no decision there depends on a wall clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<i64>,
    /// The release of its time zone data, such as `2026e`; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zones: String,
    /// Why its keeper cannot start programs, so that it starts nothing; `None` if it can. Stored only on a shared store:
    /// a node that is alone knows its own keeper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper_problem: Option<String>,
}

impl NodeRecord {
    /// A node without labels that has just started and has sent no heartbeat yet.
    pub fn new(id: NodeId, name: impl Into<String>, incarnation: u32, at: Instant) -> Self {
        Self {
            id,
            name: name.into(),
            incarnation,
            since: at,
            beat: at,
            gone: at,
            labels: BTreeSet::new(),
            draining: false,
            skew: None,
            zones: String::new(),
            keeper_problem: None,
        }
    }

    /// Whether it starts runs: it does not drain, and its keeper can start programs.
    pub fn may_start(&self) -> bool {
        !self.draining && self.keeper_problem.is_none()
    }

    /// Whether it counts as alive at a time of the store's clock.
    pub fn is_there(&self, now: Instant) -> bool {
        self.gone >= now
    }
}

/// The owner of a run: a node in one of its incarnations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunOwner {
    /// The id of the node.
    pub node: NodeId,
    /// The incarnation of the node.
    pub incarnation: u32,
}

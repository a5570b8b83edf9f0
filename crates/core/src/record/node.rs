//! A node as the others see it.

use std::collections::BTreeSet;

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use crate::ids::NodeId;

/// One running `cronhold up`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its identity, kept in its data directory.
    pub id: NodeId,
    /// What people call it.
    pub name: String,
    /// How often it has started.
    pub incarnation: u32,
    /// When it started last.
    pub since: Instant,
    /// When it was heard of last.
    pub beat: Instant,
    /// When it counts as gone, unless it is heard of before.
    pub gone: Instant,
    /// What jobs can ask for.
    pub labels: BTreeSet<String>,
    /// Whether it starts nothing any more.
    pub draining: bool,
    /// By how many microseconds the clock on its wall is ahead of the store's time, or behind when it is less than zero.
    /// Known only where several nodes may share the store. It is for people: nothing goes by the clock on the wall there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<i64>,
}

impl Node {
    /// A node without labels that has just started, and was not heard of since.
    pub fn new(id: NodeId, name: impl Into<String>, incarnation: u32, at: Instant) -> Self {
        let labels = BTreeSet::new();
        Self { id, name: name.into(), incarnation, since: at, beat: at, gone: at, labels, draining: false, skew: None }
    }

    /// Whether it counts as being there at a time of the store.
    pub fn is_there(&self, now: Instant) -> bool {
        self.gone >= now
    }
}

/// A node in one of its lives: who owns a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// The node.
    pub node: NodeId,
    /// Which start of it.
    pub incarnation: u32,
}

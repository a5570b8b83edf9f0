//! Nodes, and the health of the node that answers.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Node)]
pub struct NodeSummary {
    /// Node id.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Number of the current start of the node.
    pub incarnation: u32,
    /// Start time.
    #[schema(value_type = String, format = DateTime)]
    pub since: Instant,
    /// Time of the last heartbeat.
    #[schema(value_type = String, format = DateTime)]
    pub beat: Instant,
    /// Labels that jobs can require.
    pub labels: Vec<String>,
    /// Whether the node is draining and starts nothing new.
    pub draining: bool,
    /// Whether the node counts as gone because its heartbeat is too old.
    pub gone: bool,
    /// Milliseconds by which the node's clock is ahead of the store's, negative if it is behind; `null` if unknown.
    pub skew_ms: Option<i64>,
    /// Number of unfinished runs, at most 1,000.
    pub runs: u64,
    /// Whether this node answered the request.
    pub is_this: bool,
}

/// The result of draining a node, or of undoing that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainReply {
    /// Whether the request changed anything.
    pub changed: bool,
    /// The node after the change.
    pub node: NodeSummary,
}

/// Health of a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Health)]
pub struct HealthReport {
    /// Whether there is no problem.
    pub ok: bool,
    /// Whether recovery is complete and the daemon starts due runs.
    pub ready: bool,
    /// The problem, if there is one.
    pub trouble: Option<String>,
    /// Number of stored records that could not be read since the daemon started, up to 1,000.
    #[serde(default)]
    pub unreadable_records: u64,
    /// Version of Cronhold.
    pub version: String,
}

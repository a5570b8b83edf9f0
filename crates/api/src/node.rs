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
    /// Name of the node, for display.
    pub name: String,
    /// Number of the current start of the node.
    pub incarnation: u32,
    /// When the node started.
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
    /// Release of the node's time zone data, such as `2026e`; empty if unknown.
    #[serde(default)]
    pub zone_data: String,
    /// Why the keeper of the node cannot start programs, so that the node starts nothing; `null` if it can.
    #[serde(default)]
    pub keeper_problem: Option<String>,
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

/// A problem that an operator should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HealthProblem {
    /// Stable code for programs.
    pub code: HealthProblemCode,
    /// The problem in words.
    pub message: String,
}

/// Codes of health problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthProblemCode {
    /// The store fails as a whole.
    StoreFails,
    /// The store is sealed: it rejects all changes until an operator unseals it.
    StoreSealed,
    /// The keeper fails, so the daemon starts no program.
    KeeperFails,
    /// A part of the store is damaged.
    StoreDamaged,
    /// Stored records cannot be read. Jobs that need them do not run.
    RecordsUnreadable,
}

/// Health of a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Health)]
pub struct HealthReport {
    /// Whether the daemon works as a whole. It does even if there are problems with single records.
    pub ok: bool,
    /// Whether recovery is complete and the daemon starts due runs. A daemon whose keeper fails starts none.
    pub ready: bool,
    /// The problem; `null` if there is none.
    pub trouble: Option<String>,
    /// Everything that an operator should look at, also while `ok` is true.
    #[serde(default)]
    pub problems: Vec<HealthProblem>,
    /// Number of stored records that cannot be read, as far as the daemon has noticed, up to 1,000.
    #[serde(default)]
    pub unreadable_records: u64,
    /// Version of Cronhold.
    pub version: String,
    /// Release of the time zone data that the daemon uses, such as `2026e`.
    #[serde(default)]
    pub zone_data: String,
    /// Other running nodes whose time zone data is of another release, such as `web-2: 2026b`. Next runs that differ
    /// are left to the nodes with the newer data.
    #[serde(default)]
    pub other_zone_data: Vec<String>,
    /// Limits of the store; `null` if it sets none.
    #[serde(default)]
    pub store_limits: Option<StoreLimitsReport>,
}

/// How much the store keeps. A limit that is not set is `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = StoreLimits)]
pub struct StoreLimitsReport {
    /// Bytes of a record. Larger job definitions are rejected.
    pub record_bytes: Option<u64>,
    /// Bytes of all records that are written together.
    pub unit_bytes: Option<u64>,
    /// Bytes of the output of a run. Of longer outputs, the beginning and the end are stored.
    pub output_bytes: Option<u64>,
    /// Number of outputs. Beyond it, the oldest are deleted.
    pub outputs: Option<u64>,
    /// Finished runs of a job in each state.
    pub kept_runs: Option<u32>,
}

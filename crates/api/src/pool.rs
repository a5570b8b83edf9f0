//! Pools: limits that several jobs share.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Pool)]
pub struct PoolSummary {
    /// Name of the pool.
    pub name: String,
    /// How many runs may be active at once: the `count` of the conditions that name the pool, the smallest one if they
    /// differ. `null` if no job names the pool any more.
    pub size: Option<u32>,
    /// All sizes, if the conditions of jobs differ; each job has its own one then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<u32>,
    /// Number of active runs.
    pub active: u64,
    /// Number of runs that wait for a place.
    pub waiting: u64,
    /// Ids of the jobs that name the pool.
    pub jobs: Vec<String>,
    /// Ids of the active runs, the earliest first.
    pub runs: Vec<String>,
}

//! Events of the feed other than runs. They are small; clients request details if they need them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::PauseSummary;

/// Event `job`: a job was added, changed or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobChange {
    /// Job id.
    pub id: String,
    /// Revision of the definition; `null` if the job was removed.
    pub revision: Option<u32>,
}

/// Event `pause`: a job, or everything, was paused or resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PauseChange {
    /// Job id; `null` for everything.
    pub job: Option<String>,
    /// The current pause; `null` if it was resumed.
    pub pause: Option<PauseSummary>,
}

/// Event `node`: a message about the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeChange {
    /// What happened, in words.
    pub message: String,
}

/// Event `store`: the store failed or recovered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreChange {
    /// Whether the store is failing.
    pub failing: bool,
    /// The problem; `null` if the store recovered.
    pub trouble: Option<String>,
}

/// Event `reset`: events may be missing. Clients that display state must reload it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FeedReset {
    /// Reason, in words.
    pub why: String,
}

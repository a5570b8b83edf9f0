//! What the feed tells beside runs: small facts, after which whoever wants more asks for it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Pause;

/// A job was put or removed: event `job`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobChange {
    /// Which job.
    pub id: String,
    /// How often it was put; nothing, when it is gone.
    pub revision: Option<u32>,
}

/// A job or everything was paused or goes on: event `pause`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PauseChange {
    /// Which job; nothing, when it is everything.
    pub job: Option<String>,
    /// The pause that holds now; nothing, when there is none any more.
    pub pause: Option<Pause>,
}

/// What a node has to say of itself: event `node`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeChange {
    /// In words.
    pub message: String,
}

/// The store fails or works again: event `store`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreChange {
    /// Whether it fails.
    pub away: bool,
    /// What is wrong.
    pub trouble: Option<String>,
}

/// Something may have happened that was not told: event `reset`. Whoever shows a state asks for it anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reset {
    /// Why.
    pub why: String,
}

//! Runs of other programs that share the store, as they are told. They are not ours, so that less is known of them, and
//! nothing can be asked of them.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A run of a node of Cronken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeerRun {
    /// What Cronken calls it.
    pub id: String,
    /// The job, as Cronken knows it.
    pub job: String,
    /// Where it stands.
    pub state: PeerState,
    /// The node that has or had its program.
    pub host: String,
    /// When it was started.
    #[schema(value_type = String, format = DateTime)]
    pub started: Instant,
    /// How many milliseconds it took; known when it has ended.
    pub took_ms: Option<u64>,
    /// How its program ended, when it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended its program.
    pub signal: Option<String>,
    /// The last lines that it wrote.
    pub tail: Vec<String>,
}

/// Where a run of a node of Cronken stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PeerState {
    /// It has not ended.
    Running,
    /// It has ended well.
    Success,
    /// It has not ended well.
    Failure,
    /// Its node was not heard of any more, and nobody knows how it ended.
    Frozen,
}

impl PeerState {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Frozen => "frozen",
        }
    }
}

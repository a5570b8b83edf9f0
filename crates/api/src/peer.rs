//! Runs of Cronken nodes that share the store. They have fewer fields than Cronhold's runs and cannot be controlled.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A run of a Cronken node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeerRun {
    /// Cronken's run id.
    pub id: String,
    /// Cronken's job name.
    pub job: String,
    /// State of the run.
    pub state: PeerState,
    /// Host that runs or ran the program.
    pub host: String,
    /// Start time.
    #[schema(value_type = String, format = DateTime)]
    pub started: Instant,
    /// Duration in milliseconds; `null` while it is running.
    pub took_ms: Option<u64>,
    /// Exit code; `null` if a signal ended the program.
    pub exit_code: Option<i32>,
    /// Signal that ended the program; `null` if none did.
    pub signal: Option<String>,
    /// Last lines of the output.
    pub tail: Vec<String>,
}

/// State of a run of a Cronken node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PeerState {
    /// Not finished.
    Running,
    /// Succeeded.
    Success,
    /// Failed.
    Failure,
    /// Its node stopped sending heartbeats; the outcome is unknown.
    Frozen,
}

impl PeerState {
    /// Name of the state.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Frozen => "frozen",
        }
    }
}

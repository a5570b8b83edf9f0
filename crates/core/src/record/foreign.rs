//! Runs of foreign nodes: nodes of another system that share the store and run the same jobs. Their records are only
//! read, so that an occurrence that a foreign node has run does not run again.

use cronhold_schedule::Instant;

use crate::ids::JobId;

/// The latest run of a job that a foreign node started. Never part of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignRun {
    pub job: JobId,
    /// The name of the foreign system, one word.
    pub system: &'static str,
    /// The run's id in that system.
    pub run: String,
    /// The host that started the run.
    pub host: String,
    /// When the run started, by the store's time.
    pub started: Instant,
    /// Whether the run has not ended yet.
    pub is_running: bool,
}

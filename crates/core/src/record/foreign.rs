//! What nodes of another kind, which share the store, have run of a job. They write it in their own way; here it is only
//! read, so that an occurrence that they have run is not run again.

use cronhold_schedule::Instant;

use crate::ids::JobId;

/// The run that nodes of another kind have started last of a job. Never part of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignRun {
    /// Of which job.
    pub job: JobId,
    /// What they call the run.
    pub run: String,
    /// Where it was started.
    pub host: String,
    /// When, by the store's time.
    pub started: Instant,
    /// Whether it has not ended yet.
    pub is_running: bool,
}

//! Why the keeper does not start a program.

/// The reason of a refusal. Its message becomes the reason of the run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the run is known already: it is about to start")]
    Queued,
    #[error("the run is known already: it runs as process {0}")]
    Running(i32),
    #[error("the run is known already: it has ended")]
    Ended,
    #[error("the run is known already: it has ended and is stored")]
    Stored,
    /// The run was refused before, for this reason.
    #[error("{0}")]
    Again(String),
    #[error("the keeper is about to end and starts nothing more")]
    Retiring,
    #[error("the keeper is shutting down")]
    KeeperEnding,
    #[error("the command does not name a program")]
    NoProgram,
    #[error("the launch is {millis} ms too late")]
    Late { millis: u64 },
    #[error("the launch is too late: its lease is about to end")]
    LeaseEnding,
    #[error("the keeper's journal is full")]
    JournalFull,
    #[error("cannot write the keeper's journal: {0}")]
    JournalFailed(String),
    #[error("it was stopped before it was started")]
    Stopped,
    #[error("the process was killed before it became the program")]
    StageKilled,
    /// The program could not be started. A message of [`crate::spawn::SpawnError`], which a second stage sends as text.
    #[error("{0}")]
    NotStarted(String),
}

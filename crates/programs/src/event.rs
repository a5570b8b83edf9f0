//! Events for the log about programs. The crate has no log of its own: it passes them to an observer.

use std::io;

use cronhold_core::RunId;
use cronhold_keeper::client::ConnectionError;
use cronhold_store::Fault;

/// Receives events to be logged. Must not block.
pub type EventObserver = Box<dyn Fn(&ProgramEvent) + Send + Sync>;

/// Something that an operator may want to know.
#[derive(Debug, thiserror::Error)]
pub enum ProgramEvent {
    /// There is a connection to a keeper of this daemon's version.
    #[error("keeper {version}, pid {pid}")]
    KeeperConnected {
        /// The keeper's version.
        version: String,
        /// The keeper's process.
        pid: u32,
    },
    /// There is a connection to a keeper of another version.
    #[error("keeper {version}, pid {pid}; version {own} replaces it when no program runs")]
    OtherKeeperConnected {
        /// The keeper's version.
        version: String,
        /// The daemon's version.
        own: String,
        /// The keeper's process.
        pid: u32,
    },
    /// The keeper cannot do something on this machine.
    #[error("keeper: {0}")]
    KeeperWarning(String),
    /// There is no connection to the keeper. A message of [`ConnectionError`].
    #[error("{0}")]
    KeeperUnreachable(String),
    /// The keeper has programs that an earlier daemon started.
    #[error("programs of the keeper: {running} running, {ended} ended in the meantime")]
    ProgramsFound {
        /// How many run.
        running: usize,
        /// How many have ended since the last daemon.
        ended: usize,
    },
    /// The keeper runs a program whose run is over or unknown.
    #[error(
        "the keeper runs a program (pid {pid}) of run {run}, which is over or unknown; it continues unless its job \
         must not run twice at the same time"
    )]
    UnclaimedProgram { run: RunId, pid: u32 },
    /// The output of a run cannot be read to its end.
    #[error("the output of run {run} is incomplete: {source}")]
    OutputUnreadable { run: RunId, source: io::Error },
    /// The output of a run cannot be stored to its end.
    #[error("the output of run {run} is incomplete: {source}")]
    OutputNotStored { run: RunId, source: Fault },
    /// The offset at which a truncated output begins cannot be written. After a crash of the daemon the output would be
    /// stored twice.
    #[error("cannot record that the program of run {run} truncated its output: {source}")]
    RestartUnrecorded { run: RunId, source: io::Error },
}

impl ProgramEvent {
    pub(crate) fn unreachable(error: &ConnectionError) -> Self {
        Self::KeeperUnreachable(error.to_string())
    }
}

//! What a keeper is told at its start, and why it cannot go on. Both belong to whoever starts one.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// How long a keeper stays without programs and without a daemon.
pub const IDLE: Duration = Duration::from_secs(10);
/// How large a journal may become: room for 100,000 programs that nobody has stored.
pub const JOURNAL_MAX: u64 = 64 * 1024 * 1024;

/// What a keeper is told at its start.
#[derive(Debug, Clone)]
pub struct Options {
    /// The data directory; all files of the keeper are below `keeper` in it.
    pub data: PathBuf,
    /// Its version, for people.
    pub version: String,
    /// How long it stays without programs and without a daemon.
    pub idle: Duration,
    /// How many bytes its journal may have.
    pub journal_max: u64,
}

impl Options {
    /// The usual ones for a data directory.
    pub fn new(data: PathBuf, version: &str) -> Self {
        Self { data, version: version.to_owned(), idle: IDLE, journal_max: JOURNAL_MAX }
    }
}

/// Why a keeper cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// One keeper per data directory.
    #[error("another keeper holds {}", .0.display())]
    Held(PathBuf),
    /// Programs of an earlier keeper do not die, so nothing may be said of their runs.
    #[error("{count} processes of an earlier keeper are still alive after SIGKILL, the first is {pid}")]
    StillAlive {
        /// How many.
        count: usize,
        /// One of them.
        pid: i32,
    },
    /// The machine said no.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What it said.
        source: io::Error,
    },
}

impl KeeperError {
    /// Says what was tried.
    pub(crate) fn io<E: Into<io::Error>>(what: &str) -> impl FnOnce(E) -> Self {
        let what = what.to_owned();
        move |source| Self::Io { what, source: source.into() }
    }
}

//! The options of a keeper, and why it cannot start or continue.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// How long a keeper stays without programs and without a daemon.
pub const IDLE: Duration = Duration::from_secs(10);
/// How large the journal may become: room for 100,000 programs whose ends are not stored.
pub const JOURNAL_MAX: u64 = 64 * 1024 * 1024;

/// The options of a keeper.
#[derive(Debug, Clone)]
pub struct Options {
    /// The data directory; all files of the keeper are below `keeper` in it.
    pub data: PathBuf,
    /// Its version, for messages.
    pub version: String,
    /// How long it stays without programs and without a daemon.
    pub idle: Duration,
    /// How many bytes its journal may have.
    pub journal_max: u64,
}

impl Options {
    /// The default options for a data directory.
    pub fn new(data: PathBuf, version: &str) -> Self {
        Self { data, version: version.to_owned(), idle: IDLE, journal_max: JOURNAL_MAX }
    }
}

/// Why a keeper cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// There is another keeper for the data directory.
    #[error("another keeper holds {}", .0.display())]
    Held(PathBuf),
    /// Programs of an earlier keeper do not die, so they cannot be reported as lost.
    #[error("{count} processes of an earlier keeper are still alive after SIGKILL, the first is {pid}")]
    StillAlive {
        count: usize,
        /// The first of them.
        pid: i32,
    },
    /// A call of the system failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// The action that failed.
        what: String,
        source: io::Error,
    },
}

impl KeeperError {
    /// Adds the action that failed.
    pub(crate) fn io<E: Into<io::Error>>(what: &str) -> impl FnOnce(E) -> Self {
        let what = what.to_owned();
        move |source| Self::Io { what, source: source.into() }
    }
}

//! Why there is no connection to the keeper.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::frames::FrameError;

/// Why there is no connection to the keeper, or why it ended.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The keeper's directory cannot be created or opened.
    #[error("cannot open the keeper's directory {}: {source}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    /// Something other than an absent keeper prevents the connection.
    #[error("cannot connect to the keeper at {}: {source}", socket.display())]
    Connect { socket: PathBuf, source: io::Error },
    /// The keeper's process could not be created.
    #[error("cannot start the keeper: {0}")]
    Start(#[source] io::Error),
    /// The keeper exited before it answered.
    #[error("the keeper exited at startup ({status}){log}")]
    EndedAtStart {
        /// How it exited.
        status: ExitStatus,
        /// The last line of its log.
        log: LastLogLine,
    },
    /// The keeper was started, and its exit status cannot be determined.
    #[error("the keeper was lost at startup")]
    LostAtStart,
    /// The keeper was started and does not respond.
    #[error("the keeper does not respond {} s after it was started{log}", after.as_secs())]
    NoAnswer {
        /// How long the client waited.
        after: Duration,
        /// The last line of its log.
        log: LastLogLine,
    },
    /// The keeper did not reply to the hello.
    #[error("the keeper has not replied to the hello for {} s; its programs continue", after.as_secs())]
    NoHello {
        /// How long the client waited.
        after: Duration,
    },
    /// So many connections wait for the keeper to accept them that there is no room for another.
    #[error("the keeper does not accept connections; its programs continue")]
    NotAccepting,
    /// The keeper closed the connection before it answered the hello.
    #[error("the keeper closed the connection without a reply")]
    ClosedBeforeHello,
    /// The keeper's first message is not a hello.
    #[error("the first message of the keeper is not a hello")]
    NotAHello,
    /// The keeper's first message is not one of the protocol.
    #[error("the keeper does not follow the protocol: {0}")]
    InvalidHello(#[source] FrameError),
    /// The keeper and this daemon have no protocol in common.
    #[error(
        "the keeper (version {version}, pid {pid}) speaks protocol {} to {}, this daemon speaks {} to {}; its programs \
         continue: start a daemon of version {version} to take care of them, or end the keeper with `kill {pid}` when \
         they are done", theirs.0, theirs.1, ours.0, ours.1
    )]
    OtherProtocol {
        /// The keeper's version.
        version: String,
        /// The keeper's process.
        pid: u32,
        /// The oldest and the newest protocol of the keeper.
        theirs: (u32, u32),
        /// The oldest and the newest protocol of the daemon.
        ours: (u32, u32),
    },
    /// A message cannot be sent.
    #[error("cannot send a message to the keeper: {0}")]
    Send(#[source] FrameError),
    /// A message of the keeper is not one of the protocol.
    #[error("received an invalid message from the keeper: {0}")]
    Invalid(#[source] FrameError),
    /// The socket failed.
    #[error("the connection to the keeper failed: {0}")]
    Socket(#[source] io::Error),
    /// The keeper closed the connection.
    #[error("the keeper closed the connection")]
    Closed,
}

/// What the log of a keeper that failed ends with.
#[derive(Debug)]
pub enum LastLogLine {
    Line {
        /// Path of the log file.
        path: PathBuf,
        line: String,
    },
    /// Nothing, because the log cannot be written, such as on a full disk.
    Unwritable {
        /// Path of the log file.
        path: PathBuf,
        error: io::Error,
    },
    None,
}

impl fmt::Display for LastLogLine {
    /// The text is the end of a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { path, line } => write!(f, "; last line of {}: {line}", path.display()),
            Self::Unwritable { path, error } => write!(f, "; its log {} cannot be written: {error}", path.display()),
            Self::None => Ok(()),
        }
    }
}

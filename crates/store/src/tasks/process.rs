//! Worker processes: what is stored of them, their heartbeats and their signals.

use std::fmt;
use std::sync::Arc;

use cronhold_core::task::{ClassName, QueueName, StepId, TaskId};
use cronhold_schedule::{Instant, Span};
use serde::{Deserialize, Serialize};

/// A process that has not sent a heartbeat for this long is gone.
pub const PROCESS_TTL: Span = Span::from_secs(60);

/// How long a class stays registered after its last process was there. Its tasks wait meanwhile.
pub const CLASS_TTL: Span = Span::from_secs(24 * 3_600);

/// The id of a worker process, such as `host:pid:nonce`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct ProcessId(Arc<str>);

impl ProcessId {
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for ProcessId {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<ProcessId> for String {
    fn from(id: ProcessId) -> Self {
        id.0.to_string()
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A worker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerProcess {
    pub id: ProcessId,
    pub queue: QueueName,
    /// The classes that it performs, by name.
    pub classes: Vec<ClassName>,
    /// Steps that it makes at once.
    pub concurrency: u32,
    pub started_at: Instant,
    /// When the store received its last heartbeat, by the clock of the store.
    pub beat_at: Instant,
    /// Steps that it makes now.
    pub busy: u32,
    /// Whether it leases no further steps.
    pub is_quiet: bool,
    /// Signals that it has not received yet, the oldest first.
    pub signals: Vec<ProcessSignal>,
}

/// A signal to a worker process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessSignal {
    /// Lease no further steps.
    Quiet,
    /// Finish the steps, and exit.
    Stop,
}

/// A heartbeat of a worker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessHeartbeat {
    pub process: ProcessId,
    /// The steps that it makes.
    pub held: Vec<(TaskId, StepId)>,
    pub is_quiet: bool,
    /// How long the steps are held without a further heartbeat.
    pub lease: Span,
}

/// The reply to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HeartbeatReply {
    /// Steps that the process does not hold any more.
    pub lost: Vec<StepId>,
    /// The next signal for the process.
    pub signal: Option<ProcessSignal>,
    /// Whether the store does not have the process, which has to register again.
    pub is_unknown: bool,
}

impl ProcessSignal {
    /// The word that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Stop => "stop",
        }
    }

    /// The signal with this word.
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Quiet, Self::Stop].into_iter().find(|signal| signal.as_str() == word)
    }
}

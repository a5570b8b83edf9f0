//! What a store keeps of a task beside its ports, its state and its children.

use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};

use super::TaskId;
use super::json::JsonText;
use super::name::{ChildName, ClassName, QueueName, StepId};
use super::status::TaskStatus;

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRecord {
    pub id: TaskId,
    pub queue: QueueName,
    pub class: ClassName,
    /// A JSON list, or `None`.
    pub args: Option<JsonText>,
    pub status: TaskStatus,
    pub created_at: Instant,
    /// The name of its creator; empty if none was given.
    pub created_by: String,
    /// When its latest step began; `None` before the first one, and as long as its startup has not succeeded.
    pub ran_at: Option<Instant>,
    /// The parent, and the name among its children.
    pub parent: Option<(TaskId, ChildName)>,
    /// Its place in its queue; `None` if it has none.
    pub entry: Option<u64>,
    /// When it gets a place in its queue.
    pub run_at: Option<Instant>,
    /// The step that holds it.
    pub lease: Option<StepLease>,
    /// The last step that was committed, by which an unknown outcome is settled.
    pub last_step: Option<StepId>,
    /// Steps in a row whose worker was lost.
    pub lost_steps: u32,
    /// Steps in a row that were refused.
    pub refused_steps: u32,
    /// The minute, counted from 1970, in which its latest step began.
    pub rate_minute: i64,
    /// Steps that began in that minute.
    pub rate_count: u32,
}

/// A step that holds a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepLease {
    pub step: StepId,
    /// When it is lost, unless it is renewed.
    pub until: Instant,
}

impl TaskRecord {
    /// Whether the task can be leased as soon as a worker for its class is free.
    pub const fn is_ready(&self) -> bool {
        self.entry.is_some() && self.lease.is_none()
    }
}

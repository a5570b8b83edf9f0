//! Queues, their classes, and worker processes.

use std::collections::BTreeMap;

use cronhold_core::task::JsonText;
use cronhold_schedule::Instant;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Queue)]
pub struct QueueReport {
    /// Name.
    pub queue: String,
    /// Number of tasks whose next step waits for a worker.
    pub ready: u64,
    /// Number of worker processes that are alive.
    pub workers: u64,
    /// Registered classes by name, with their configuration.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub classes: BTreeMap<String, JsonText>,
}

/// Classes of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassesBody {
    /// Configuration of each class by name: `inports` and `outports` with the options of ports, `status_publish`, and any
    /// further keys.
    #[schema(value_type = BTreeMap<String, Value>, example = json!({"Sum": {"inports": {"in": {}}, "outports": {"sum": {}}}}))]
    pub classes: BTreeMap<String, JsonText>,
    /// Id of the worker; default: `http:` and the queue. A worker that registers again replaces its classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200)]
    pub worker: Option<String>,
}

/// A worker process that is alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Worker)]
pub struct WorkerReport {
    /// Id.
    pub id: String,
    /// Queue.
    pub queue: String,
    /// Classes that it performs.
    pub classes: Vec<String>,
    /// Maximum number of steps at once.
    pub concurrency: u32,
    /// Number of steps that it makes now.
    pub busy: u32,
    /// Whether it begins no further steps.
    pub quiet: bool,
    /// When it started.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Instant,
    /// Time of its last heartbeat.
    #[schema(value_type = String, format = DateTime)]
    pub beat: Instant,
    /// Signals that it has not received yet: `quiet` or `stop`.
    pub signals: Vec<String>,
}

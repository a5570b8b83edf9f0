//! The bodies of `/api/v1/task-store`: the methods of [`TaskStore`] as requests, for worker processes beside a daemon. The
//! types of the port are their own encoding, so that both sides always mean the same; this file has only what the
//! arguments and results of a method need around them.
//!
//! [`TaskStore`]: cronhold_store::tasks::TaskStore

use cronhold_core::task::{
    Channel, ChildName, ClassConfig, ClassName, JsonText, PortAddress, QueueName, StepId, TaskId, TaskKey, TaskRefusal,
    TaskUnit,
};
use cronhold_schedule::Span;
use cronhold_store::Fault;
use cronhold_store::tasks::{
    ArrivalMark, BareJobEnd, ProcessId, ProcessSignal, TaskQuery, TaskReceipt, TaskUnitError, WindowLimits,
    WorkerProcess,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Path prefix of the task store.
pub const TASK_STORE: &str = "/api/v1/task-store";
/// Maximum size of a body, in bytes. A unit has at most 16 MiB of values, which escapes can make longer.
pub const TASK_STORE_BODY_MAX: usize = 64 * 1024 * 1024;
/// How long the daemon waits for arrivals before it replies with the mark as it is, in seconds.
pub const ARRIVALS_WAIT_SECS: u64 = 20;

/// The reply to a request: what the method of the store returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStoreReply<T> {
    Ok(T),
    Fault(TaskStoreFault),
}

/// A fault of the store behind the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStoreFault {
    pub kind: TaskStoreFaultKind,
    pub message: String,
}

/// What a fault means for the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStoreFaultKind {
    Unavailable,
    Recovering,
    Restarted,
    ReadOnly,
    OutcomeUnknown,
    Permanent,
}

/// Why a unit is not committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskUnitProblem {
    Refused(TaskRefusal),
    Fault(TaskStoreFault),
}

/// Units to commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitTasksBody {
    pub units: Vec<TaskUnit>,
}

/// The result of each unit: a receipt, or why it is not committed.
pub type CommitTasksReply = Vec<Result<TaskReceipt, TaskUnitProblem>>;

/// A worker process and its classes with their configurations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterWorkerBody {
    pub process: WorkerProcess,
    pub classes: Vec<(ClassName, JsonText)>,
}

/// A worker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerProcessBody {
    pub process: ProcessId,
}

/// A signal to a worker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalWorkerBody {
    pub process: ProcessId,
    pub signal: ProcessSignal,
}

/// A task by its id or an alias.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindTaskBody {
    pub key: TaskKey,
}

/// A task and how much of it is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWindowBody {
    pub task: TaskId,
    pub limits: WindowLimits,
}

/// A port, a position in it, and how many items are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortItemsBody {
    pub port: PortAddress,
    pub from: u64,
    pub limits: WindowLimits,
}

/// A child by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskChildBody {
    pub task: TaskId,
    pub name: ChildName,
}

/// A page of children.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskChildrenBody {
    pub task: TaskId,
    pub after: Option<ChildName>,
    pub limit: usize,
}

/// A page of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPageBody {
    pub query: TaskQuery,
    pub limit: usize,
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskQueueBody {
    pub queue: QueueName,
}

/// A page of channels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelPageBody {
    pub after: Option<Channel>,
    pub limit: usize,
}

/// A queue, and the arrivals that the caller has seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivalsBody {
    pub queue: QueueName,
    pub seen: Option<ArrivalMark>,
}

/// Jobs of Sidekiq clients that a process holds, for another lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldBareJobsBody {
    pub process: ProcessId,
    pub held: Vec<StepId>,
    pub lease: Span,
}

/// Ends of jobs of Sidekiq clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndBareJobsBody {
    pub ends: Vec<BareJobEnd>,
}

/// The result of each end.
pub type EndBareJobsReply = Vec<Result<(), TaskUnitProblem>>;

/// Channels to listen to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenBody {
    pub channels: Vec<Channel>,
}

/// A request without arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NoArguments {}

/// How `/api/v1/task-store` is documented: the methods and their bodies are those of the port for tasks, which changes
/// with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskStoreCall {}

impl<T> From<Result<T, Fault>> for TaskStoreReply<T> {
    fn from(result: Result<T, Fault>) -> Self {
        match result {
            Ok(value) => Self::Ok(value),
            Err(fault) => Self::Fault(fault.into()),
        }
    }
}

impl<T> From<TaskStoreReply<T>> for Result<T, Fault> {
    fn from(reply: TaskStoreReply<T>) -> Self {
        match reply {
            TaskStoreReply::Ok(value) => Ok(value),
            TaskStoreReply::Fault(fault) => Err(fault.into()),
        }
    }
}

impl From<Fault> for TaskStoreFault {
    fn from(fault: Fault) -> Self {
        let (kind, message) = match fault {
            Fault::Unavailable(message) => (TaskStoreFaultKind::Unavailable, message),
            Fault::Recovering(message) => (TaskStoreFaultKind::Recovering, message),
            Fault::Restarted(message) => (TaskStoreFaultKind::Restarted, message),
            Fault::ReadOnly(message) => (TaskStoreFaultKind::ReadOnly, message),
            Fault::OutcomeUnknown(message) => (TaskStoreFaultKind::OutcomeUnknown, message),
            Fault::Permanent(message) => (TaskStoreFaultKind::Permanent, message),
            Fault::Unreadable(record) => (TaskStoreFaultKind::Permanent, record.to_string()),
        };
        Self { kind, message }
    }
}

impl From<TaskStoreFault> for Fault {
    fn from(TaskStoreFault { kind, message }: TaskStoreFault) -> Self {
        match kind {
            TaskStoreFaultKind::Unavailable => Self::Unavailable(message),
            TaskStoreFaultKind::Recovering => Self::Recovering(message),
            TaskStoreFaultKind::Restarted => Self::Restarted(message),
            TaskStoreFaultKind::ReadOnly => Self::ReadOnly(message),
            TaskStoreFaultKind::OutcomeUnknown => Self::OutcomeUnknown(message),
            TaskStoreFaultKind::Permanent => Self::Permanent(message),
        }
    }
}

impl From<TaskUnitError> for TaskUnitProblem {
    fn from(error: TaskUnitError) -> Self {
        match error {
            TaskUnitError::Refused(refusal) => Self::Refused(refusal),
            TaskUnitError::Fault(fault) => Self::Fault(fault.into()),
        }
    }
}

impl From<TaskUnitProblem> for TaskUnitError {
    fn from(problem: TaskUnitProblem) -> Self {
        match problem {
            TaskUnitProblem::Refused(refusal) => Self::Refused(refusal),
            TaskUnitProblem::Fault(fault) => Self::Fault(fault.into()),
        }
    }
}

impl RegisterWorkerBody {
    /// The classes as the store takes them; an error if one of them is not a configuration.
    pub fn configs(&self) -> Result<Vec<(ClassName, ClassConfig)>, String> {
        let config = |(class, text): &(ClassName, JsonText)| match ClassConfig::parse(text.as_str()) {
            Ok(config) => Ok((class.clone(), config)),
            Err(error) => Err(format!("class {class}: {error}")),
        };
        self.classes.iter().map(config).collect()
    }
}

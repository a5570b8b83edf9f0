//! The `TaskStore` trait: everything that tasks require of a place where they are kept.

use std::fmt;

use cronhold_core::task::{
    ActOutcome, Channel, ChildName, ClassConfig, ClassName, JsonText, PortAddress, QueueName, StepError, StepId,
    TaskAct, TaskId, TaskKey, TaskRecord, TaskRefusal, TaskStatus, TaskUnit,
};
use cronhold_schedule::{Instant, Span};
use serde::{Deserialize, Serialize};

use super::process::{HeartbeatReply, ProcessHeartbeat, ProcessId, ProcessSignal, WorkerProcess};
use super::window::{PortWindow, TaskWindow, WindowLimits};
use crate::{Fault, Pending};

/// Keeps tasks.
///
/// Futures may be dropped at any time. A request whose future was dropped may or may not have taken effect.
pub trait TaskStore: Send + Sync + fmt::Debug {
    /// Commits units in their order, each as a whole or not at all, and returns a result for each. A committed unit is
    /// durable.
    ///
    /// A unit of a step is refused with [`TaskRefusal::StepLost`] if the step does not hold its task any more. If it is
    /// refused for another reason, the same commit ends the step: it is repeated if that can help, and fails otherwise.
    /// A unit that was committed before is not carried out again, so every unit can be sent again after an unknown
    /// outcome, except requests without a key. A unit of a step that is sent again after the next step of its task has
    /// ended is refused with [`TaskRefusal::StepLost`], whether it was committed or not.
    fn commit(&self, units: Vec<TaskUnit>) -> Pending<'_, Vec<Result<TaskReceipt, TaskUnitError>>>;

    /// Leases steps of ready tasks, at most one for each of the ids. Before that, tasks whose time has come get a place
    /// in their queue, and steps whose lease has expired are taken back.
    fn lease(&self, request: LeaseRequest) -> Pending<'_, Result<Vec<LeasedStep>, Fault>>;

    /// Stores that a worker process is alive, and renews the leases of its steps. The reply says if the process has to
    /// register again.
    fn heartbeat(&self, beat: ProcessHeartbeat) -> Pending<'_, Result<HeartbeatReply, Fault>>;

    /// Adds a worker process and its classes. Classes of the queue that no process has had for a day are removed.
    fn register(
        &self,
        process: WorkerProcess,
        classes: Vec<(ClassName, ClassConfig)>,
    ) -> Pending<'_, Result<(), Fault>>;

    /// Removes a worker process that has stopped from those that are alive. Its classes stay registered for a day.
    fn deregister<'a>(&'a self, process: &'a ProcessId) -> Pending<'a, Result<(), Fault>>;

    /// Queues a signal for a worker process. Returns false if it is unknown.
    fn signal<'a>(&'a self, process: &'a ProcessId, signal: ProcessSignal) -> Pending<'a, Result<bool, Fault>>;

    /// A task by its id or an alias.
    fn find<'a>(&'a self, key: &'a TaskKey) -> Pending<'a, Result<Option<TaskRecord>, Fault>>;

    /// A task with the beginning of everything it has, as one snapshot.
    fn window<'a>(&'a self, task: TaskId, limits: &'a WindowLimits) -> Pending<'a, Result<Option<TaskWindow>, Fault>>;

    /// Items of a port from position `from`, within the limits; `None` if the port does not exist.
    fn items<'a>(
        &'a self,
        port: &'a PortAddress,
        from: u64,
        limits: &'a WindowLimits,
    ) -> Pending<'a, Result<Option<PortWindow>, Fault>>;

    /// A child by its name.
    fn child<'a>(&'a self, task: TaskId, name: &'a ChildName) -> Pending<'a, Result<Option<TaskId>, Fault>>;

    /// Children by name; `after` is the last one of the page before.
    fn children<'a>(
        &'a self,
        task: TaskId,
        after: Option<&'a ChildName>,
        limit: usize,
    ) -> Pending<'a, Result<Vec<(ChildName, TaskId)>, Fault>>;

    /// A page of tasks, ordered by id.
    fn page<'a>(&'a self, query: &'a TaskQuery, limit: usize) -> Pending<'a, Result<Vec<TaskRecord>, Fault>>;

    /// Queues that have registered classes or ready tasks, by name.
    fn queues(&self) -> Pending<'_, Result<Vec<QueueSummary>, Fault>>;

    /// The registered classes of a queue by name.
    fn classes<'a>(&'a self, queue: &'a QueueName) -> Pending<'a, Result<Vec<(ClassName, ClassConfig)>, Fault>>;

    /// Channels with in ports that receive their messages, by name; `after` is the last one of the page before.
    fn channels<'a>(
        &'a self,
        after: Option<&'a Channel>,
        limit: usize,
    ) -> Pending<'a, Result<Vec<ChannelSummary>, Fault>>;

    /// Live worker processes by id.
    fn processes(&self) -> Pending<'_, Result<Vec<WorkerProcess>, Fault>>;

    /// Steps since the store was created.
    fn totals(&self) -> Pending<'_, Result<TaskTotals, Fault>>;

    /// When the next task is due or the next lease expires; `None` if there is neither.
    fn next_due(&self) -> Pending<'_, Result<Option<Instant>, Fault>>;

    /// Waits until a task of the queue became ready, or the next due time became earlier, after `seen`. Without `seen`,
    /// returns the present mark at once.
    fn arrivals<'a>(&'a self, queue: &'a QueueName, seen: Option<ArrivalMark>) -> Pending<'a, ArrivalMark>;

    /// Listens to messages on these channels. A message on a channel below one of them arrives too. Messages that are
    /// published before this returns may be missed.
    fn listen(&self, channels: Vec<Channel>) -> Pending<'_, Result<Box<dyn ChannelListener>, Fault>>;

    /// The time by the clock of the store.
    fn time(&self) -> Pending<'_, Result<Instant, Fault>>;

    /// Leases bare jobs: entries of a queue that plain Sidekiq clients have pushed, and that are not tasks. Only a store
    /// whose queues are Sidekiq's has any.
    fn lease_bare_jobs(&self, request: LeaseRequest) -> Pending<'_, Result<Vec<BareJob>, Fault>> {
        drop(request);
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Renews the leases of the bare jobs of a process, and returns those that are lost. Call it after a heartbeat of the
    /// process.
    fn hold_bare_jobs<'a>(
        &'a self,
        process: &'a ProcessId,
        held: Vec<StepId>,
        lease: Span,
    ) -> Pending<'a, Result<Vec<StepId>, Fault>> {
        let _ = (process, lease);
        Box::pin(async { Ok(held) })
    }

    /// Commits the ends of bare jobs, each together with its acts or not at all. An end that is refused because its
    /// acts are impossible fails the job. One whose job is not held any more is refused with
    /// [`TaskRefusal::Invalid`], whether it was committed before or not.
    fn end_bare_jobs(&self, ends: Vec<BareJobEnd>) -> Pending<'_, Vec<Result<(), TaskUnitError>>> {
        let refused = ends.iter().map(|_| Err(TaskRefusal::Invalid("the store has no bare jobs".to_owned()).into()));
        let refused = refused.collect();
        Box::pin(async { refused })
    }
}

/// Receives messages while it exists. A listener that falls behind loses the oldest ones.
pub trait ChannelListener: Send + fmt::Debug {
    /// The next message.
    fn next(&mut self) -> Pending<'_, ChannelMessage>;
}

/// A message as a listener receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelMessage {
    /// The channel on which it was published, or one above it.
    pub channel: Channel,
    pub message: JsonText,
}

/// The result of a committed unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskReceipt {
    /// What each act returned.
    Committed(Vec<ActOutcome>),
    /// The unit was committed before. Has the tasks that it created then, if it was a request.
    Repeated(Vec<TaskId>),
}

/// Why a unit is not committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskUnitError {
    #[error(transparent)]
    Refused(#[from] TaskRefusal),
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A request for steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRequest {
    pub queue: QueueName,
    /// The classes that the worker performs.
    pub classes: Vec<LeaseClass>,
    /// New random ids, one for each step that the worker can begin.
    pub steps: Vec<StepId>,
    /// How long a step is held without a heartbeat.
    pub lease: Span,
    pub limits: WindowLimits,
}

/// A class that a worker performs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseClass {
    pub name: ClassName,
    /// Whether its first step begins with a startup, after which the worker commits [`StepEnding::Started`].
    ///
    /// [`StepEnding::Started`]: cronhold_core::task::StepEnding::Started
    pub has_startup: bool,
}

/// A step that a worker has to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeasedStep {
    pub step: StepId,
    pub call: StepCall,
    /// Whether no step of the task has begun before.
    pub is_first: bool,
    pub window: TaskWindow,
}

/// What the worker does in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepCall {
    Perform,
    Shutdown,
}

/// An entry of a plain Sidekiq client that a worker has to perform. It has no ports, no state and no children.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BareJob {
    /// Holds the job until its end is committed.
    pub step: StepId,
    pub queue: QueueName,
    pub class: ClassName,
    /// Sidekiq's id of the job, which is not the id of a task.
    pub jid: String,
    /// A JSON list.
    pub args: JsonText,
    /// The whole entry as its client wrote it.
    pub entry: JsonText,
}

/// The end of a bare job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BareJobEnd {
    pub step: StepId,
    pub ending: BareJobEnding,
    /// What the job does to tasks, in order. Left out if it failed or is given back.
    pub acts: Vec<TaskAct>,
}

/// How a bare job ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BareJobEnding {
    Completed,
    /// The worker failed. The job is retried as Sidekiq does it, or is dead after its last attempt.
    Failed(StepError),
    /// The worker process gives the job back before it began.
    GivenBack,
}

/// Which tasks a page lists; `after` is the last one of the page before.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskQuery {
    pub status: Option<TaskStatus>,
    pub queue: Option<QueueName>,
    pub after: Option<TaskId>,
}

/// A queue and how many tasks wait in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSummary {
    pub queue: QueueName,
    /// Tasks that can be leased now.
    pub ready: u64,
}

/// A channel and how many in ports receive its messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSummary {
    pub channel: Channel,
    pub subscribers: u64,
}

/// Steps since the store was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskTotals {
    /// Steps that were committed, failed ones included.
    pub processed: u64,
    /// Steps that failed.
    pub failed: u64,
}

/// How many arrivals a queue had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct ArrivalMark(pub u64);

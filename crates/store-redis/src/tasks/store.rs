//! The `TaskStore` trait for Redis. All work runs on the runtime of the store.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cronhold_core::task::{
    Channel, ChildName, ClassConfig, ClassName, PortAddress, QueueName, StepId, TaskId, TaskKey, TaskRecord, TaskUnit,
};
use cronhold_schedule::{Instant, Span};
use cronhold_store::tasks::execute::registry::{
    execute_deregister, execute_heartbeat, execute_register, execute_signal, live_processes,
};
use cronhold_store::tasks::{
    ArrivalMark, BareJob, BareJobEnd, ChannelListener, ChannelSummary, ExecuteContext, HeartbeatReply, LeaseRequest,
    LeasedStep, PortWindow, ProcessHeartbeat, ProcessId, ProcessSignal, QueueSummary, TaskBoard, TaskEffects,
    TaskQuery, TaskReceipt, TaskRows, TaskStore, TaskTotals, TaskUnitError, TaskWindow, WindowLimits, WorkerProcess,
};
use cronhold_store::{ClockFn, Fault, Pending};
use cronhold_store_remote::{StoreRuntime, closed};
use tokio::sync::oneshot;

use super::arrivals::ArrivalWatcher;
use super::bare_jobs::{end_bare_job, hold_bare_jobs, lease_bare_jobs, wants_of_bare_lease};
use super::changes::TaskRowSet;
use super::facts::TaskFact;
use super::keys::TaskKeys;
use super::lane::TaskLane;
use super::listener::RedisChannelListener;
use super::process_texts::{WorkItem, work_commands};
use super::scripts::TaskScripts;
use super::work::{LeaseWork, RowsResult, RowsWork, UnitWork};
use crate::connections::RedisConnections;

/// The tasks of a store in Redis. A clone is another handle.
#[derive(Clone)]
pub struct RedisTaskStore {
    /// Keeps the runtime alive.
    owner: Arc<dyn RuntimeOwner>,
    parts: Arc<RedisTaskParts>,
}

/// What has the runtime of the store.
pub(crate) trait RuntimeOwner: Send + Sync {
    fn store_runtime(&self) -> &StoreRuntime;
}

/// How tasks are kept.
pub(crate) struct TaskOptions {
    /// Names this process in notifications.
    pub(crate) token: String,
    /// A clock that tests advance, in place of the one of the server.
    pub(crate) clock: Option<ClockFn>,
    /// Whether the server knows all subscribers, so that nothing is published that has no receiver.
    pub(crate) counts_listeners: bool,
}

/// What all handles share.
#[derive(Debug)]
pub(crate) struct RedisTaskParts {
    scripts: Arc<TaskScripts>,
    board: Arc<TaskBoard>,
    lane: TaskLane,
    watcher: Arc<ArrivalWatcher>,
    /// Where the next sweep begins.
    sweep_place: AtomicU64,
}

impl RedisTaskParts {
    pub(crate) fn start(
        connections: RedisConnections,
        runtime: &tokio::runtime::Handle,
        prefix: &str,
        options: TaskOptions,
    ) -> Self {
        let TaskOptions { token, clock, counts_listeners } = options;
        let scripts = Arc::new(TaskScripts::new(connections, TaskKeys::new(prefix), clock));
        let board = Arc::new(TaskBoard::default());
        let watcher = ArrivalWatcher::new(Arc::clone(&scripts), Arc::clone(&board), token.clone());
        let lane = TaskLane::start(runtime, Arc::clone(&scripts), Arc::clone(&board), token, counts_listeners);
        Self { scripts, board, lane, watcher: Arc::new(watcher), sweep_place: AtomicU64::new(0) }
    }
}

impl RedisTaskStore {
    pub(crate) fn new(owner: Arc<dyn RuntimeOwner>, parts: Arc<RedisTaskParts>) -> Self {
        Self { owner, parts }
    }

    /// Makes a change in the next batch.
    async fn change<T: Send + 'static>(
        &self,
        wants: Vec<TaskFact>,
        work: impl FnMut(&mut TaskRowSet, ExecuteContext) -> RowsResult<T> + Send + 'static,
    ) -> Result<T, Fault> {
        let (reply, result) = oneshot::channel();
        self.parts.lane.add(Box::new(RowsWork { wants, work, result: None, reply }));
        result.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Reads on the runtime.
    fn read<T, F>(&self, work: impl FnOnce(Arc<TaskScripts>) -> F) -> Pending<'_, Result<T, Fault>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        Box::pin(self.owner.store_runtime().run_read(work(Arc::clone(&self.parts.scripts))))
    }
}

impl TaskStore for RedisTaskStore {
    fn commit(&self, units: Vec<TaskUnit>) -> Pending<'_, Vec<Result<TaskReceipt, TaskUnitError>>> {
        let count = units.len();
        Box::pin(async move {
            let (reply, results) = oneshot::channel();
            self.parts.lane.add(Box::new(UnitWork { units, results: Vec::new(), reply }));
            results.await.unwrap_or_else(|_| vec![Err(closed().into()); count])
        })
    }

    fn lease(&self, request: LeaseRequest) -> Pending<'_, Result<Vec<LeasedStep>, Fault>> {
        Box::pin(async move {
            let (reply, result) = oneshot::channel();
            self.parts.lane.add(Box::new(LeaseWork { request, result: Ok(Vec::new()), reply }));
            result.await.unwrap_or_else(|_| Err(closed()))
        })
    }

    fn heartbeat(&self, beat: ProcessHeartbeat) -> Pending<'_, Result<HeartbeatReply, Fault>> {
        let keys = self.parts.scripts.keys().clone();
        let mut wants = vec![TaskFact::Process(beat.process.clone())];
        wants.extend(beat.held.iter().map(|(task, _)| TaskFact::Task(*task)));
        let (from, parts) = (self.parts.sweep_place.load(Ordering::Relaxed), Arc::clone(&self.parts));
        Box::pin(self.change(wants, move |rows, context| {
            let reply = execute_heartbeat(rows, &beat, context.now)?;
            let mut work = Vec::new();
            for (task, step) in beat.held.iter().filter(|(_, step)| !reply.lost.contains(step)) {
                let task = rows.task(*task)?;
                work.extend(task.map(|task| WorkItem::of_task(&task, *step, context.now)));
            }
            for command in work_commands(&keys, &beat.process, &work) {
                rows.add_command(command);
            }
            let (next, effects) = rows.sweep(from)?;
            parts.sweep_place.store(next, Ordering::Relaxed);
            Ok((reply, effects))
        }))
    }

    fn register(
        &self,
        process: WorkerProcess,
        classes: Vec<(ClassName, ClassConfig)>,
    ) -> Pending<'_, Result<(), Fault>> {
        let wants =
            vec![TaskFact::Process(process.id.clone()), TaskFact::Processes, TaskFact::Classes(process.queue.clone())];
        Box::pin(
            self.change(wants, move |rows, context| Ok(((), execute_register(rows, &process, &classes, context)?))),
        )
    }

    fn deregister<'a>(&'a self, process: &'a ProcessId) -> Pending<'a, Result<(), Fault>> {
        let process = process.clone();
        Box::pin(self.change(vec![TaskFact::Process(process.clone())], move |rows, context| {
            Ok((execute_deregister(rows, &process, context.now)?, TaskEffects::default()))
        }))
    }

    fn signal<'a>(&'a self, process: &'a ProcessId, signal: ProcessSignal) -> Pending<'a, Result<bool, Fault>> {
        let process = process.clone();
        Box::pin(self.change(vec![TaskFact::Process(process.clone())], move |rows, context| {
            Ok((execute_signal(rows, &process, signal, context.now)?, TaskEffects::default()))
        }))
    }

    fn find<'a>(&'a self, key: &'a TaskKey) -> Pending<'a, Result<Option<TaskRecord>, Fault>> {
        let key = key.clone();
        self.read(|scripts| async move { scripts.find(&key).await })
    }

    fn window<'a>(&'a self, task: TaskId, limits: &'a WindowLimits) -> Pending<'a, Result<Option<TaskWindow>, Fault>> {
        let limits = *limits;
        self.read(move |scripts| async move { scripts.window(task, &limits).await })
    }

    fn items<'a>(
        &'a self,
        port: &'a PortAddress,
        from: u64,
        limits: &'a WindowLimits,
    ) -> Pending<'a, Result<Option<PortWindow>, Fault>> {
        let (port, limits) = (port.clone(), *limits);
        self.read(move |scripts| async move { scripts.items(&port, from, &limits).await })
    }

    fn child<'a>(&'a self, task: TaskId, name: &'a ChildName) -> Pending<'a, Result<Option<TaskId>, Fault>> {
        let name = name.clone();
        self.read(move |scripts| async move { scripts.child(task, &name).await })
    }

    fn children<'a>(
        &'a self,
        task: TaskId,
        after: Option<&'a ChildName>,
        limit: usize,
    ) -> Pending<'a, Result<Vec<(ChildName, TaskId)>, Fault>> {
        let after = after.cloned();
        self.read(move |scripts| async move { scripts.children(task, after.as_ref(), limit).await })
    }

    fn page<'a>(&'a self, query: &'a TaskQuery, limit: usize) -> Pending<'a, Result<Vec<TaskRecord>, Fault>> {
        let query = query.clone();
        self.read(move |scripts| async move { scripts.page(&query, limit).await })
    }

    fn queues(&self) -> Pending<'_, Result<Vec<QueueSummary>, Fault>> {
        self.read(|scripts| async move { scripts.queues().await })
    }

    fn classes<'a>(&'a self, queue: &'a QueueName) -> Pending<'a, Result<Vec<(ClassName, ClassConfig)>, Fault>> {
        let queue = queue.clone();
        self.read(move |scripts| async move { scripts.classes(&queue).await })
    }

    fn channels<'a>(
        &'a self,
        after: Option<&'a Channel>,
        limit: usize,
    ) -> Pending<'a, Result<Vec<ChannelSummary>, Fault>> {
        let after = after.cloned();
        self.read(move |scripts| async move { scripts.channels(after.as_ref(), limit).await })
    }

    fn processes(&self) -> Pending<'_, Result<Vec<WorkerProcess>, Fault>> {
        Box::pin(self.change(vec![TaskFact::Processes], |rows, context| {
            Ok((live_processes(rows, context.now)?, TaskEffects::default()))
        }))
    }

    fn totals(&self) -> Pending<'_, Result<TaskTotals, Fault>> {
        self.read(|scripts| async move { scripts.totals().await })
    }

    fn next_due(&self) -> Pending<'_, Result<Option<Instant>, Fault>> {
        self.read(|scripts| async move { scripts.next_due().await })
    }

    fn arrivals<'a>(&'a self, queue: &'a QueueName, seen: Option<ArrivalMark>) -> Pending<'a, ArrivalMark> {
        self.parts.watcher.watch(queue, self.owner.store_runtime().handle());
        self.parts.board.arrivals(queue, seen)
    }

    fn listen(&self, channels: Vec<Channel>) -> Pending<'_, Result<Box<dyn ChannelListener>, Fault>> {
        self.read(|scripts| async move {
            let listener = RedisChannelListener::subscribe(&scripts, channels).await?;
            Ok(Box::new(listener) as Box<dyn ChannelListener>)
        })
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        self.read(|scripts| async move { scripts.time().await })
    }

    fn lease_bare_jobs(&self, request: LeaseRequest) -> Pending<'_, Result<Vec<BareJob>, Fault>> {
        Box::pin(self.change(wants_of_bare_lease(&request), move |rows, context| {
            let jobs = lease_bare_jobs(rows, &request, context.now)?;
            Ok((jobs, rows.effects_of_moves(&request.queue)))
        }))
    }

    fn hold_bare_jobs<'a>(
        &'a self,
        process: &'a ProcessId,
        held: Vec<StepId>,
        lease: Span,
    ) -> Pending<'a, Result<Vec<StepId>, Fault>> {
        let (process, keys) = (process.clone(), self.parts.scripts.keys().clone());
        Box::pin(self.change(Vec::new(), move |rows, context| {
            let lost = hold_bare_jobs(rows, &keys, &process, &held, context.now.plus(lease))?;
            Ok((lost, TaskEffects::default()))
        }))
    }

    fn end_bare_jobs(&self, ends: Vec<BareJobEnd>) -> Pending<'_, Vec<Result<(), TaskUnitError>>> {
        let count = ends.len();
        Box::pin(async move {
            let results = self.change(Vec::new(), move |rows, context| {
                let mut all = TaskEffects::default();
                let results = ends.iter().map(|end| end_bare_job(rows, end, context, &mut all)).collect();
                Ok((results, all))
            });
            results.await.unwrap_or_else(|fault| vec![Err(fault.into()); count])
        })
    }
}

impl fmt::Debug for RedisTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisTaskStore({:?})", self.parts.scripts.keys())
    }
}

//! The `TaskStore` trait for a SQLite file. Reads run on the caller's thread; changes go to the writer thread.

use std::fmt;
use std::sync::Arc;

use cronhold_core::task::{
    Channel, ChildName, ClassConfig, ClassName, PortAddress, QueueName, TaskId, TaskKey, TaskRecord, TaskUnit,
};
use cronhold_schedule::Instant;
use cronhold_store::tasks::execute::lease::execute_lease;
use cronhold_store::tasks::execute::registry::{
    execute_deregister, execute_heartbeat, execute_register, execute_signal, live_processes,
};
use cronhold_store::tasks::window::{find_task, read_items, read_window};
use cronhold_store::tasks::{
    ArrivalMark, ChannelListener, ChannelSummary, ExecuteContext, HeartbeatReply, LeaseRequest, LeasedStep, PortWindow,
    ProcessHeartbeat, ProcessId, ProcessSignal, QueueSummary, TaskBoard, TaskCounter, TaskEffects, TaskQuery,
    TaskReceipt, TaskRows, TaskStore, TaskTotals, TaskUnitError, TaskWindow, WindowLimits, WorkerProcess,
};
use cronhold_store::{Fault, Pending};

use super::write::{ChangeResult, TaskChange, TaskUnitWrites};
use super::{TaskRowError, TaskTransaction};
use crate::SqliteStore;
use crate::pool::ReadError;
use crate::writer::WriterRequest;

/// The tasks of a store in a file. It keeps the file open.
#[derive(Clone)]
pub struct SqliteTaskStore {
    store: SqliteStore,
    board: Arc<TaskBoard>,
}

impl SqliteTaskStore {
    /// The tasks of this store. All handles on one file share the board.
    pub(crate) const fn new(store: SqliteStore, board: Arc<TaskBoard>) -> Self {
        Self { store, board }
    }

    /// Makes a change on the writer thread.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut TaskTransaction<'_>, ExecuteContext) -> ChangeResult<T> + Send + 'static,
    ) -> Result<T, Fault> {
        let board = Arc::clone(&self.board);
        let request =
            |reply| WriterRequest::Tasks(Box::new(TaskChange { board, work, effects: TaskEffects::default(), reply }));
        self.store.request(request).await?
    }

    /// Reads rows in one snapshot.
    fn read<T>(&self, work: impl FnOnce(&mut TaskTransaction<'_>) -> Result<T, TaskRowError>) -> Result<T, Fault> {
        let in_transaction = |connection: &_| work(&mut TaskTransaction::new(connection)).map_err(ReadError::from);
        self.store.read(|reader| in_transaction(reader.connection))
    }
}

impl TaskStore for SqliteTaskStore {
    fn commit(&self, units: Vec<TaskUnit>) -> Pending<'_, Vec<Result<TaskReceipt, TaskUnitError>>> {
        Box::pin(async move {
            let (board, count) = (Arc::clone(&self.board), units.len());
            let request = |reply| {
                WriterRequest::Tasks(Box::new(TaskUnitWrites { board, units, effects: TaskEffects::default(), reply }))
            };
            match self.store.request(request).await {
                Ok(results) => results,
                Err(fault) => vec![Err(fault.into()); count],
            }
        })
    }

    fn lease(&self, request: LeaseRequest) -> Pending<'_, Result<Vec<LeasedStep>, Fault>> {
        Box::pin(self.change(move |rows, context| execute_lease(rows, &request, context)))
    }

    fn heartbeat(&self, beat: ProcessHeartbeat) -> Pending<'_, Result<HeartbeatReply, Fault>> {
        Box::pin(
            self.change(move |rows, context| {
                Ok((execute_heartbeat(rows, &beat, context.now)?, TaskEffects::default()))
            }),
        )
    }

    fn register(
        &self,
        process: WorkerProcess,
        classes: Vec<(ClassName, ClassConfig)>,
    ) -> Pending<'_, Result<(), Fault>> {
        Box::pin(self.change(move |rows, context| Ok(((), execute_register(rows, &process, &classes, context)?))))
    }

    fn deregister<'a>(&'a self, process: &'a ProcessId) -> Pending<'a, Result<(), Fault>> {
        let process = process.clone();
        Box::pin(self.change(move |rows, context| {
            Ok((execute_deregister(rows, &process, context.now)?, TaskEffects::default()))
        }))
    }

    fn signal<'a>(&'a self, process: &'a ProcessId, signal: ProcessSignal) -> Pending<'a, Result<bool, Fault>> {
        let process = process.clone();
        Box::pin(self.change(move |rows, context| {
            Ok((execute_signal(rows, &process, signal, context.now)?, TaskEffects::default()))
        }))
    }

    fn find<'a>(&'a self, key: &'a TaskKey) -> Pending<'a, Result<Option<TaskRecord>, Fault>> {
        Box::pin(async move { self.read(|rows| find_task(rows, key)) })
    }

    fn window<'a>(&'a self, task: TaskId, limits: &'a WindowLimits) -> Pending<'a, Result<Option<TaskWindow>, Fault>> {
        Box::pin(async move { self.read(|rows| read_window(rows, task, limits)) })
    }

    fn items<'a>(
        &'a self,
        port: &'a PortAddress,
        from: u64,
        limits: &'a WindowLimits,
    ) -> Pending<'a, Result<Option<PortWindow>, Fault>> {
        Box::pin(async move { self.read(|rows| read_items(rows, port, from, limits)) })
    }

    fn child<'a>(&'a self, task: TaskId, name: &'a ChildName) -> Pending<'a, Result<Option<TaskId>, Fault>> {
        Box::pin(async move { self.read(|rows| rows.child(task, name)) })
    }

    fn children<'a>(
        &'a self,
        task: TaskId,
        after: Option<&'a ChildName>,
        limit: usize,
    ) -> Pending<'a, Result<Vec<(ChildName, TaskId)>, Fault>> {
        Box::pin(async move { self.read(|rows| rows.children(task, after, limit)) })
    }

    fn page<'a>(&'a self, query: &'a TaskQuery, limit: usize) -> Pending<'a, Result<Vec<TaskRecord>, Fault>> {
        Box::pin(async move { self.read(|rows| rows.page(query, limit)) })
    }

    fn queues(&self) -> Pending<'_, Result<Vec<QueueSummary>, Fault>> {
        Box::pin(async move { self.read(|rows| rows.queues()) })
    }

    fn classes<'a>(&'a self, queue: &'a QueueName) -> Pending<'a, Result<Vec<(ClassName, ClassConfig)>, Fault>> {
        Box::pin(async move { self.read(|rows| rows.classes(queue)) })
    }

    fn channels<'a>(
        &'a self,
        after: Option<&'a Channel>,
        limit: usize,
    ) -> Pending<'a, Result<Vec<ChannelSummary>, Fault>> {
        Box::pin(async move { self.read(|rows| rows.channels(after, limit)) })
    }

    fn processes(&self) -> Pending<'_, Result<Vec<WorkerProcess>, Fault>> {
        let now = self.store.now();
        Box::pin(async move { self.read(|rows| live_processes(rows, now)) })
    }

    fn totals(&self) -> Pending<'_, Result<TaskTotals, Fault>> {
        Box::pin(async move {
            self.read(|rows| {
                let processed = rows.number(TaskCounter::Processed)?;
                Ok(TaskTotals { processed, failed: rows.number(TaskCounter::Failed)? })
            })
        })
    }

    fn next_due(&self) -> Pending<'_, Result<Option<Instant>, Fault>> {
        Box::pin(async move { self.read(|rows| rows.next_due()) })
    }

    fn arrivals<'a>(&'a self, queue: &'a QueueName, seen: Option<ArrivalMark>) -> Pending<'a, ArrivalMark> {
        self.board.arrivals(queue, seen)
    }

    fn listen(&self, channels: Vec<Channel>) -> Pending<'_, Result<Box<dyn ChannelListener>, Fault>> {
        Box::pin(async move { Ok(self.board.listen(channels)) })
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        Box::pin(async move { Ok(self.store.now()) })
    }
}

impl fmt::Debug for SqliteTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteTaskStore({:?})", self.store)
    }
}

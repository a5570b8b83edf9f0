//! The reference store for tasks: everything in memory under one lock, without I/O and without a clock of its own.

mod rows;
mod tables;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};

use cronhold_core::task::{
    Channel, ChildName, ClassConfig, ClassName, PortAddress, QueueName, TaskId, TaskKey, TaskRecord, TaskRefusal,
    TaskUnit,
};
use cronhold_schedule::Instant;

use self::tables::TaskTables;
use super::board::TaskBoard;
use super::execute::lease::execute_lease;
use super::execute::registry::{
    execute_deregister, execute_heartbeat, execute_register, execute_signal, live_processes,
};
use super::execute::step::{end_refused_step, execute_unit};
use super::execute::{ExecuteContext, TaskEffects};
use super::port::{
    ArrivalMark, ChannelListener, ChannelSummary, LeaseRequest, LeasedStep, QueueSummary, TaskQuery, TaskReceipt,
    TaskStore, TaskTotals, TaskUnitError,
};
use super::process::{HeartbeatReply, ProcessHeartbeat, ProcessId, ProcessSignal, WorkerProcess};
use super::rows::{TaskCounter, TaskRows};
use super::window::{PortWindow, TaskWindow, WindowLimits, find_task, read_items, read_window};
use crate::{ClockFn, Fault, Pending, lock_mutex};

/// A handle on tasks in memory. A clone is another handle on the same tasks, as another process would have.
///
/// Every request except the waits for arrivals and messages completes when its future is first polled.
#[derive(Clone)]
pub struct MemoryTaskStore {
    clock: ClockFn,
    tables: Arc<Mutex<TaskTables>>,
    board: Arc<TaskBoard>,
}

impl MemoryTaskStore {
    /// A store without tasks that takes its time from `clock`.
    pub fn new(clock: ClockFn) -> Self {
        Self { clock, tables: Arc::default(), board: Arc::default() }
    }

    /// Makes a change as a whole, and notifies those who wait for its effects.
    fn change<T>(
        &self,
        work: impl FnOnce(&mut TaskTables, ExecuteContext) -> Result<(T, TaskEffects), TaskRefusal>,
    ) -> Result<T, TaskRefusal> {
        let context = ExecuteContext { now: (self.clock)(), has_listeners: self.board.has_listeners() };
        let mut tables = lock_mutex(&self.tables);
        match work(&mut tables, context) {
            Ok((result, effects)) => {
                tables.commit();
                drop(tables);
                self.board.publish(effects);
                Ok(result)
            }
            Err(refusal) => {
                tables.roll_back();
                Err(refusal)
            }
        }
    }

    fn commit_one(&self, unit: &TaskUnit) -> Result<TaskReceipt, TaskUnitError> {
        let refusal = match self.change(|tables, context| execute_unit(tables, unit, context)) {
            Ok(receipt) => return Ok(receipt),
            Err(refusal) => refusal,
        };
        self.change(|tables, context| Ok(((), end_refused_step(tables, unit, &refusal, context)?)))?;
        Err(refusal.into())
    }

    /// Reads rows. Nothing is refused while rows are read.
    fn read<T>(&self, work: impl FnOnce(&mut TaskTables) -> Result<T, TaskRefusal>) -> Result<T, Fault> {
        work(&mut lock_mutex(&self.tables)).map_err(|refusal| to_fault(&refusal))
    }
}

/// A change that no unit makes is never refused.
fn to_fault(refusal: &TaskRefusal) -> Fault {
    Fault::Permanent(refusal.to_string())
}

impl TaskStore for MemoryTaskStore {
    fn commit(&self, units: Vec<TaskUnit>) -> Pending<'_, Vec<Result<TaskReceipt, TaskUnitError>>> {
        Box::pin(async move { units.iter().map(|unit| self.commit_one(unit)).collect() })
    }

    fn lease(&self, request: LeaseRequest) -> Pending<'_, Result<Vec<LeasedStep>, Fault>> {
        Box::pin(async move {
            self.change(|tables, context| execute_lease(tables, &request, context))
                .map_err(|refusal| to_fault(&refusal))
        })
    }

    fn heartbeat(&self, beat: ProcessHeartbeat) -> Pending<'_, Result<HeartbeatReply, Fault>> {
        Box::pin(async move {
            let work = |tables: &mut TaskTables, context: ExecuteContext| {
                Ok((execute_heartbeat(tables, &beat, context.now)?, TaskEffects::default()))
            };
            self.change(work).map_err(|refusal| to_fault(&refusal))
        })
    }

    fn register(
        &self,
        process: WorkerProcess,
        classes: Vec<(ClassName, ClassConfig)>,
    ) -> Pending<'_, Result<(), Fault>> {
        Box::pin(async move {
            let work = |tables: &mut TaskTables, context: ExecuteContext| {
                Ok(((), execute_register(tables, &process, &classes, context)?))
            };
            self.change(work).map_err(|refusal| to_fault(&refusal))
        })
    }

    fn deregister<'a>(&'a self, process: &'a ProcessId) -> Pending<'a, Result<(), Fault>> {
        Box::pin(async move {
            let work = |tables: &mut TaskTables, context: ExecuteContext| {
                Ok((execute_deregister(tables, process, context.now)?, TaskEffects::default()))
            };
            self.change(work).map_err(|refusal| to_fault(&refusal))
        })
    }

    fn signal<'a>(&'a self, process: &'a ProcessId, signal: ProcessSignal) -> Pending<'a, Result<bool, Fault>> {
        Box::pin(async move {
            let work = |tables: &mut TaskTables, context: ExecuteContext| {
                Ok((execute_signal(tables, process, signal, context.now)?, TaskEffects::default()))
            };
            self.change(work).map_err(|refusal| to_fault(&refusal))
        })
    }

    fn find<'a>(&'a self, key: &'a TaskKey) -> Pending<'a, Result<Option<TaskRecord>, Fault>> {
        Box::pin(async move { self.read(|tables| find_task(tables, key)) })
    }

    fn window<'a>(&'a self, task: TaskId, limits: &'a WindowLimits) -> Pending<'a, Result<Option<TaskWindow>, Fault>> {
        Box::pin(async move { self.read(|tables| read_window(tables, task, limits)) })
    }

    fn items<'a>(
        &'a self,
        port: &'a PortAddress,
        from: u64,
        limits: &'a WindowLimits,
    ) -> Pending<'a, Result<Option<PortWindow>, Fault>> {
        Box::pin(async move { self.read(|tables| read_items(tables, port, from, limits)) })
    }

    fn child<'a>(&'a self, task: TaskId, name: &'a ChildName) -> Pending<'a, Result<Option<TaskId>, Fault>> {
        Box::pin(async move { self.read(|tables| tables.child(task, name)) })
    }

    fn children<'a>(
        &'a self,
        task: TaskId,
        after: Option<&'a ChildName>,
        limit: usize,
    ) -> Pending<'a, Result<Vec<(ChildName, TaskId)>, Fault>> {
        Box::pin(async move { self.read(|tables| tables.children(task, after, limit)) })
    }

    fn page<'a>(&'a self, query: &'a TaskQuery, limit: usize) -> Pending<'a, Result<Vec<TaskRecord>, Fault>> {
        Box::pin(async move {
            self.read(|tables| {
                let first = query.after.map_or(Some(TaskId::FIRST), |after| TaskId::new(after.number() + 1));
                let rest = first.into_iter().flat_map(|first| tables.tasks.range(first..)).map(|(_, task)| task);
                let of_status = rest.filter(|task| query.status.is_none_or(|status| task.status == status));
                let found = of_status.filter(|task| query.queue.as_ref().is_none_or(|queue| task.queue == *queue));
                Ok(found.take(limit).cloned().collect())
            })
        })
    }

    fn queues(&self) -> Pending<'_, Result<Vec<QueueSummary>, Fault>> {
        Box::pin(async move {
            self.read(|tables| {
                let mut queues: Vec<QueueName> = tables.classes.keys().map(|(queue, _)| queue.clone()).collect();
                queues.extend(tables.ready.keys().map(|(queue, ..)| queue.clone()));
                queues.sort();
                queues.dedup();
                let summary = |queue: QueueName| {
                    let ready = tables.ready.keys().filter(|(of, ..)| *of == queue).count() as u64;
                    QueueSummary { queue, ready }
                };
                Ok(queues.into_iter().map(summary).collect())
            })
        })
    }

    fn classes<'a>(&'a self, queue: &'a QueueName) -> Pending<'a, Result<Vec<(ClassName, ClassConfig)>, Fault>> {
        Box::pin(async move { self.read(|tables| tables.classes(queue)) })
    }

    fn channels<'a>(
        &'a self,
        after: Option<&'a Channel>,
        limit: usize,
    ) -> Pending<'a, Result<Vec<ChannelSummary>, Fault>> {
        Box::pin(async move {
            self.read(|tables| {
                let mut found: Vec<ChannelSummary> = Vec::new();
                for (channel, _) in tables.subscribers.iter().filter(|(channel, _)| after.is_none_or(|a| channel > a)) {
                    let count = found.len();
                    match found.last_mut().filter(|last| last.channel == *channel) {
                        Some(last) => last.subscribers += 1,
                        None if count == limit => break,
                        None => found.push(ChannelSummary { channel: channel.clone(), subscribers: 1 }),
                    }
                }
                Ok(found)
            })
        })
    }

    fn processes(&self) -> Pending<'_, Result<Vec<WorkerProcess>, Fault>> {
        let now = (self.clock)();
        Box::pin(async move { self.read(|tables| live_processes(tables, now)) })
    }

    fn totals(&self) -> Pending<'_, Result<TaskTotals, Fault>> {
        Box::pin(async move {
            self.read(|tables| {
                let processed = tables.number(TaskCounter::Processed)?;
                Ok(TaskTotals { processed, failed: tables.number(TaskCounter::Failed)? })
            })
        })
    }

    fn next_due(&self) -> Pending<'_, Result<Option<Instant>, Fault>> {
        Box::pin(async move {
            self.read(|tables| {
                let first = |times: &BTreeSet<(Instant, TaskId)>| times.first().map(|(at, _)| *at);
                Ok(first(&tables.due).into_iter().chain(first(&tables.leases)).min())
            })
        })
    }

    fn arrivals<'a>(&'a self, queue: &'a QueueName, seen: Option<ArrivalMark>) -> Pending<'a, ArrivalMark> {
        self.board.arrivals(queue, seen)
    }

    fn listen(&self, channels: Vec<Channel>) -> Pending<'_, Result<Box<dyn ChannelListener>, Fault>> {
        Box::pin(async move { Ok(self.board.listen(channels)) })
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        Box::pin(async move { Ok((self.clock)()) })
    }
}

impl fmt::Debug for MemoryTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryTaskStore")
    }
}

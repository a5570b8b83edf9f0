//! The methods of the port as requests.

use cronhold_api::{
    ChannelPageBody, CommitTasksBody, CommitTasksReply, EndBareJobsBody, EndBareJobsReply, FindTaskBody,
    HoldBareJobsBody, ListenBody, NoArguments, PortItemsBody, RegisterWorkerBody, SignalWorkerBody, TaskChildBody,
    TaskChildrenBody, TaskPageBody, TaskQueueBody, TaskUnitProblem, TaskWindowBody, WorkerProcessBody,
};
use cronhold_core::task::{
    Channel, ChildName, ClassConfig, ClassName, JsonText, PortAddress, QueueName, StepId, TaskId, TaskKey, TaskRecord,
    TaskUnit,
};
use cronhold_schedule::{Instant, Span};
use cronhold_store::tasks::{
    ArrivalMark, BareJob, BareJobEnd, ChannelListener, ChannelSummary, HeartbeatReply, LeaseRequest, LeasedStep,
    PortWindow, ProcessHeartbeat, ProcessId, ProcessSignal, QueueSummary, TaskQuery, TaskReceipt, TaskStore,
    TaskTotals, TaskUnitError, TaskWindow, WindowLimits, WorkerProcess,
};
use cronhold_store::{Fault, Pending};

use super::RemoteTaskStore;
use super::RequestEffect::{Reads, Writes};

/// The results of `count` parts of a request, each of which has failed if the request has.
fn each_result<T>(
    reply: Result<Vec<Result<T, TaskUnitProblem>>, Fault>,
    count: usize,
    parts: &str,
) -> Vec<Result<T, TaskUnitError>> {
    let failed = |fault: Fault| (0..count).map(|_| Err(fault.clone().into())).collect();
    match reply {
        Ok(results) if results.len() == count => results.into_iter().map(|result| result.map_err(Into::into)).collect(),
        Ok(results) => {
            let message = format!("the daemon replied with {} results for {count} {parts}", results.len());
            failed(Fault::Permanent(message))
        }
        Err(fault) => failed(fault),
    }
}

impl TaskStore for RemoteTaskStore {
    fn commit(&self, units: Vec<TaskUnit>) -> Pending<'_, Vec<Result<TaskReceipt, TaskUnitError>>> {
        let count = units.len();
        let sent = self.send::<_, CommitTasksReply>(Writes, "commit", CommitTasksBody { units });
        Box::pin(async move { each_result(sent.await, count, "units") })
    }

    fn lease(&self, request: LeaseRequest) -> Pending<'_, Result<Vec<LeasedStep>, Fault>> {
        self.call(Writes, "lease", request)
    }

    fn heartbeat(&self, beat: ProcessHeartbeat) -> Pending<'_, Result<HeartbeatReply, Fault>> {
        self.call(Writes, "heartbeat", beat)
    }

    fn register(
        &self,
        process: WorkerProcess,
        classes: Vec<(ClassName, ClassConfig)>,
    ) -> Pending<'_, Result<(), Fault>> {
        let classes = classes.into_iter().map(|(class, config)| (class, config.text)).collect();
        self.call(Writes, "register", RegisterWorkerBody { process, classes })
    }

    fn deregister<'a>(&'a self, process: &'a ProcessId) -> Pending<'a, Result<(), Fault>> {
        self.call(Writes, "deregister", WorkerProcessBody { process: process.clone() })
    }

    fn signal<'a>(&'a self, process: &'a ProcessId, signal: ProcessSignal) -> Pending<'a, Result<bool, Fault>> {
        self.call(Writes, "signal", SignalWorkerBody { process: process.clone(), signal })
    }

    fn find<'a>(&'a self, key: &'a TaskKey) -> Pending<'a, Result<Option<TaskRecord>, Fault>> {
        self.call(Reads, "find", FindTaskBody { key: key.clone() })
    }

    fn window<'a>(&'a self, task: TaskId, limits: &'a WindowLimits) -> Pending<'a, Result<Option<TaskWindow>, Fault>> {
        self.call(Reads, "window", TaskWindowBody { task, limits: *limits })
    }

    fn items<'a>(
        &'a self,
        port: &'a PortAddress,
        from: u64,
        limits: &'a WindowLimits,
    ) -> Pending<'a, Result<Option<PortWindow>, Fault>> {
        self.call(Reads, "items", PortItemsBody { port: port.clone(), from, limits: *limits })
    }

    fn child<'a>(&'a self, task: TaskId, name: &'a ChildName) -> Pending<'a, Result<Option<TaskId>, Fault>> {
        self.call(Reads, "child", TaskChildBody { task, name: name.clone() })
    }

    fn children<'a>(
        &'a self,
        task: TaskId,
        after: Option<&'a ChildName>,
        limit: usize,
    ) -> Pending<'a, Result<Vec<(ChildName, TaskId)>, Fault>> {
        self.call(Reads, "children", TaskChildrenBody { task, after: after.cloned(), limit })
    }

    fn page<'a>(&'a self, query: &'a TaskQuery, limit: usize) -> Pending<'a, Result<Vec<TaskRecord>, Fault>> {
        self.call(Reads, "page", TaskPageBody { query: query.clone(), limit })
    }

    fn queues(&self) -> Pending<'_, Result<Vec<QueueSummary>, Fault>> {
        self.call(Reads, "queues", NoArguments {})
    }

    fn classes<'a>(&'a self, queue: &'a QueueName) -> Pending<'a, Result<Vec<(ClassName, ClassConfig)>, Fault>> {
        let classes =
            self.call::<_, Vec<(ClassName, JsonText)>>(Reads, "classes", TaskQueueBody { queue: queue.clone() });
        Box::pin(async move {
            let config = |(class, text): (ClassName, JsonText)| match ClassConfig::parse(text.as_str()) {
                Ok(config) => Ok((class, config)),
                Err(error) => Err(Fault::Permanent(format!("class {class}: {error}"))),
            };
            classes.await?.into_iter().map(config).collect()
        })
    }

    fn channels<'a>(
        &'a self,
        after: Option<&'a Channel>,
        limit: usize,
    ) -> Pending<'a, Result<Vec<ChannelSummary>, Fault>> {
        self.call(Reads, "channels", ChannelPageBody { after: after.cloned(), limit })
    }

    fn processes(&self) -> Pending<'_, Result<Vec<WorkerProcess>, Fault>> {
        self.call(Reads, "processes", NoArguments {})
    }

    fn totals(&self) -> Pending<'_, Result<TaskTotals, Fault>> {
        self.call(Reads, "totals", NoArguments {})
    }

    fn next_due(&self) -> Pending<'_, Result<Option<Instant>, Fault>> {
        self.call(Reads, "next-due", NoArguments {})
    }

    /// Waits on this process, which watches the queue at the daemon. Without `seen`, needs no request.
    fn arrivals<'a>(&'a self, queue: &'a QueueName, seen: Option<ArrivalMark>) -> Pending<'a, ArrivalMark> {
        self.wait_for_arrivals(queue, seen)
    }

    fn listen(&self, channels: Vec<Channel>) -> Pending<'_, Result<Box<dyn ChannelListener>, Fault>> {
        Box::pin(self.listen_to(ListenBody { channels }))
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        self.call(Reads, "time", NoArguments {})
    }

    fn lease_bare_jobs(&self, request: LeaseRequest) -> Pending<'_, Result<Vec<BareJob>, Fault>> {
        self.call(Writes, "lease-bare-jobs", request)
    }

    fn hold_bare_jobs<'a>(
        &'a self,
        process: &'a ProcessId,
        held: Vec<StepId>,
        lease: Span,
    ) -> Pending<'a, Result<Vec<StepId>, Fault>> {
        self.call(Writes, "hold-bare-jobs", HoldBareJobsBody { process: process.clone(), held, lease })
    }

    fn end_bare_jobs(&self, ends: Vec<BareJobEnd>) -> Pending<'_, Vec<Result<(), TaskUnitError>>> {
        let count = ends.len();
        let sent = self.send::<_, EndBareJobsReply>(Writes, "end-bare-jobs", EndBareJobsBody { ends });
        Box::pin(async move { each_result(sent.await, count, "ends") })
    }
}

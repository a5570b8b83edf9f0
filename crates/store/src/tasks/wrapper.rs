//! Task stores that wrap another one, as [`crate::Wrapper`] does for stores of jobs. A wrapper implements only what it
//! changes.

use cronhold_core::task::{
    Channel, ChildName, ClassConfig, ClassName, PortAddress, QueueName, StepId, TaskId, TaskKey, TaskRecord, TaskUnit,
};
use cronhold_schedule::{Instant, Span};

use super::{
    ArrivalMark, BareJob, BareJobEnd, ChannelListener, ChannelSummary, HeartbeatReply, LeaseRequest, LeasedStep,
    PortWindow, ProcessHeartbeat, ProcessId, ProcessSignal, QueueSummary, TaskQuery, TaskReceipt, TaskStore,
    TaskTotals, TaskUnitError, TaskWindow, WindowLimits, WorkerProcess,
};
use crate::wrapper::wrapper;
use crate::{Fault, Pending};

wrapper! {
    trait TaskStoreWrapper: TaskStore;
    fn commit(&self, units: Vec<TaskUnit>) -> Pending<'_, Vec<Result<TaskReceipt, TaskUnitError>>>;
    fn lease(&self, request: LeaseRequest) -> Pending<'_, Result<Vec<LeasedStep>, Fault>>;
    fn heartbeat(&self, beat: ProcessHeartbeat) -> Pending<'_, Result<HeartbeatReply, Fault>>;
    fn register(
        &self,
        process: WorkerProcess,
        classes: Vec<(ClassName, ClassConfig)>
    ) -> Pending<'_, Result<(), Fault>>;
    fn deregister<'a>(&'a self, process: &'a ProcessId) -> Pending<'a, Result<(), Fault>>;
    fn signal<'a>(&'a self, process: &'a ProcessId, signal: ProcessSignal) -> Pending<'a, Result<bool, Fault>>;
    fn find<'a>(&'a self, key: &'a TaskKey) -> Pending<'a, Result<Option<TaskRecord>, Fault>>;
    fn window<'a>(&'a self, task: TaskId, limits: &'a WindowLimits) -> Pending<'a, Result<Option<TaskWindow>, Fault>>;
    fn items<'a>(
        &'a self,
        port: &'a PortAddress,
        from: u64,
        limits: &'a WindowLimits
    ) -> Pending<'a, Result<Option<PortWindow>, Fault>>;
    fn child<'a>(&'a self, task: TaskId, name: &'a ChildName) -> Pending<'a, Result<Option<TaskId>, Fault>>;
    fn children<'a>(
        &'a self,
        task: TaskId,
        after: Option<&'a ChildName>,
        limit: usize
    ) -> Pending<'a, Result<Vec<(ChildName, TaskId)>, Fault>>;
    fn page<'a>(&'a self, query: &'a TaskQuery, limit: usize) -> Pending<'a, Result<Vec<TaskRecord>, Fault>>;
    fn queues(&self) -> Pending<'_, Result<Vec<QueueSummary>, Fault>>;
    fn classes<'a>(&'a self, queue: &'a QueueName) -> Pending<'a, Result<Vec<(ClassName, ClassConfig)>, Fault>>;
    fn channels<'a>(
        &'a self,
        after: Option<&'a Channel>,
        limit: usize
    ) -> Pending<'a, Result<Vec<ChannelSummary>, Fault>>;
    fn processes(&self) -> Pending<'_, Result<Vec<WorkerProcess>, Fault>>;
    fn totals(&self) -> Pending<'_, Result<TaskTotals, Fault>>;
    fn next_due(&self) -> Pending<'_, Result<Option<Instant>, Fault>>;
    fn arrivals<'a>(&'a self, queue: &'a QueueName, seen: Option<ArrivalMark>) -> Pending<'a, ArrivalMark>;
    fn listen(&self, channels: Vec<Channel>) -> Pending<'_, Result<Box<dyn ChannelListener>, Fault>>;
    fn time(&self) -> Pending<'_, Result<Instant, Fault>>;
    fn lease_bare_jobs(&self, request: LeaseRequest) -> Pending<'_, Result<Vec<BareJob>, Fault>>;
    fn hold_bare_jobs<'a>(
        &'a self,
        process: &'a ProcessId,
        held: Vec<StepId>,
        lease: Span
    ) -> Pending<'a, Result<Vec<StepId>, Fault>>;
    fn end_bare_jobs(&self, ends: Vec<BareJobEnd>) -> Pending<'_, Vec<Result<(), TaskUnitError>>>;
}

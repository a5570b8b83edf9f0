//! The inputs of a node: one bounded queue. Requests get a reply; reports of programs are kept until they are durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_core::RunId;
use cronhold_core::command::{Command, DeliveryResult, ProbeResult, ProgramReport};
use cronhold_core::decision::{CommandReply, Rejection};
use cronhold_core::record::{ActionId, Actor};
use cronhold_schedule::Span;
use cronhold_schedule::calendar::CalendarSet;
use cronhold_store::Fault;

use crate::counters::{CounterSnapshot, Counters};
use crate::ports::{EntropySource, MachineClock};
use crate::queue::BoundedQueue;

/// The capacity of the queue.
const INPUTS_MAX: usize = 16 * 1024;
/// The length of the queue from which on requests are refused, so that there is always room for reports of programs.
const REQUESTS_MAX: usize = 12 * 1024;

/// An input of a node.
#[derive(Debug)]
pub(crate) enum NodeInput {
    /// A command, and the uptime by which it has to be decided, if it has a deadline.
    Request { actor: Actor, command: Command, deadline: Option<Span>, reply: RequestReply },
    /// The report of a program.
    Report { run: RunId, report: ProgramReport },
    /// The result of an attempt to deliver an action.
    Delivery { action: ActionId, attempt: u32, result: DeliveryResult },
    /// The answer to a check of a waiting run.
    Probe { run: RunId, attempt: u32, result: ProbeResult },
    /// Schedules that fire at the start of a node fire now.
    Start,
    /// Replaces the calendars.
    Calendars(Arc<CalendarSet>),
    /// Why the keeper cannot start programs; `None` if it can.
    Keeper(Option<Arc<str>>),
    /// Stops the node.
    Stop,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The core rejected the command.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] Fault),
    /// Other writers kept changing the same records. Nothing was changed.
    #[error("other requests keep changing the same records")]
    Contended,
    /// Too many requests are waiting.
    #[error("the node is overloaded")]
    Busy,
    /// The node did not process the request before its deadline.
    #[error("the node did not process the request in time")]
    Late,
    /// The node is stopping.
    #[error("the node is stopping")]
    Stopping,
}

/// Sends requests and reports to a node. Clones share the queue.
#[derive(Debug, Clone)]
pub struct NodeHandle {
    pub(crate) inputs: BoundedQueue<NodeInput>,
    pub(crate) counters: Arc<Counters>,
    is_stopping: Arc<AtomicBool>,
    clock: Arc<dyn MachineClock>,
    entropy: Arc<dyn EntropySource>,
}

/// Where the reply to a request goes.
#[derive(Debug, Clone)]
pub(crate) struct RequestReply(BoundedQueue<Result<CommandReply, RequestError>>);

impl NodeHandle {
    pub(crate) fn new(clock: Arc<dyn MachineClock>, entropy: Arc<dyn EntropySource>) -> Self {
        Self {
            inputs: BoundedQueue::new(INPUTS_MAX),
            counters: Arc::default(),
            is_stopping: Arc::default(),
            clock,
            entropy,
        }
    }

    /// Sends a command and waits for the reply.
    pub async fn request(&self, actor: Actor, command: Command) -> Result<CommandReply, RequestError> {
        self.request_until(actor, command, None).await
    }

    /// Sends a command that is refused if the node does not get to it within a time.
    pub async fn request_within(
        &self,
        actor: Actor,
        command: Command,
        within: Span,
    ) -> Result<CommandReply, RequestError> {
        self.request_until(actor, command, Some(self.clock.uptime().plus(within))).await
    }

    async fn request_until(
        &self,
        actor: Actor,
        command: Command,
        deadline: Option<Span>,
    ) -> Result<CommandReply, RequestError> {
        let reply = RequestReply::new();
        let input = NodeInput::Request { actor, command, deadline, reply: reply.clone() };
        if self.inputs.len() >= REQUESTS_MAX {
            return Err(RequestError::Busy);
        }
        self.inputs.try_send(input).map_err(|_| RequestError::Busy)?;
        reply.0.receive().await
    }

    /// Sends the report of a program. Waits while the queue is full.
    pub async fn report(&self, run: RunId, report: ProgramReport) {
        self.inputs.send(NodeInput::Report { run, report }).await;
    }

    /// Sends the result of an attempt to deliver an action. Waits while the queue is full.
    pub async fn report_delivery(&self, action: ActionId, attempt: u32, result: DeliveryResult) {
        self.inputs.send(NodeInput::Delivery { action, attempt, result }).await;
    }

    /// Sends the answer to a check of a waiting run. Waits while the queue is full.
    pub async fn report_probe(&self, run: RunId, attempt: u32, result: ProbeResult) {
        self.inputs.send(NodeInput::Probe { run, attempt, result }).await;
    }

    /// Lets schedules fire that fire at the start of a node. The caller first applies all changes of jobs, because such a
    /// job may be about to be changed or removed.
    pub async fn begin(&self) {
        self.inputs.send(NodeInput::Start).await;
    }

    /// Replaces the calendars that schedules can name. Later commands are decided with them. The caller has to request
    /// that the next occurrences of jobs that name them are computed again.
    pub async fn renew_calendars(&self, calendars: Arc<CalendarSet>) {
        self.inputs.send(NodeInput::Calendars(calendars)).await;
    }

    /// Reports why the keeper cannot start programs; `None` if it can. A node that cannot start programs claims nothing.
    pub async fn report_keeper(&self, problem: Option<Arc<str>>) {
        self.inputs.send(NodeInput::Keeper(problem)).await;
    }

    /// Stops the node. Its programs keep running.
    pub async fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.inputs.send(NodeInput::Stop).await;
    }

    /// Whether [`Self::stop`] was called.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// A new random run id.
    pub fn random_run_id(&self) -> RunId {
        let bits = self.entropy.bits().to_be_bytes();
        let mut random = [0; 10];
        random.copy_from_slice(&bits[..10]);
        RunId::from_random(self.clock.now(), random)
    }

    /// The current values of the node's counters.
    pub fn counters(&self) -> CounterSnapshot {
        self.counters.snapshot()
    }
}

impl RequestReply {
    fn new() -> Self {
        Self(BoundedQueue::new(1))
    }

    /// Replies to the request. Only the first reply counts.
    pub(crate) fn send(&self, reply: Result<CommandReply, RequestError>) {
        let _ = self.0.try_send(reply);
    }
}

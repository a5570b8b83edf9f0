//! Makes the steps of the tasks of jobs with `triggers`: a step turns the messages in the port into triggers of the job, and
//! then takes them from the port. The id of a trigger names the task and the position of the message, so a step that is
//! repeated after a crash sends the same triggers, which the job has received before.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use cronhold_core::command::Command;
use cronhold_core::decision::Rejection;
use cronhold_core::record::{Actor, TriggerId, TriggerMessage};
use cronhold_core::task::{
    Channel, JsonObject, JsonText, PortDirection, PortItem, PortTarget, StepEnding, StepId, TaskAct, TaskId,
    TaskRefusal, TaskTarget, TaskUnit,
};
use cronhold_core::{JobId, RunId};
use cronhold_engine::{EntropySource, MachineClock, NodeHandle, RequestError};
use cronhold_keeper::fail;
use cronhold_schedule::Span;
use cronhold_store::tasks::{
    ArrivalMark, LeaseClass, LeaseRequest, LeasedStep, PortWindow, ProcessHeartbeat, ProcessId, StepCall, TaskStore,
    TaskUnitError, TaskWindow, WindowLimits, WorkerProcess,
};
use cronhold_store::{Fault, lock_mutex};
use tracing::warn;

use super::trigger_tasks::{TriggerTasks, class, class_config, in_port, job_of, queue, refused_port};

/// How long a step is held without a heartbeat. A node that was killed delays its messages by this time at most.
const LEASE: Span = Span::from_secs(10);
/// The time between two heartbeats.
const BEAT: Span = Span::from_secs(3);
/// Steps that are leased at once.
const STEPS_MAX: usize = 4;
/// The messages of one step.
const WINDOW: WindowLimits = WindowLimits { items: 256, bytes: 1 << 20, children: 0 };
/// The longest wait between two looks for steps.
const LOOK_EVERY: Span = Span::from_secs(5);
/// The wait after the store or the node could not do its part, and until a job with too many triggers is tried again.
const RETRY_WAIT: Span = Span::from_secs(1);
/// Steps that a task may begin in a minute before each further one takes at least [`SLOW_STEP`], so that it never begins
/// as many as end it.
const QUICK_STEPS: u32 = 100;
const SLOW_STEP: Span = Span::from_millis(150);
/// Refused messages that are kept for each job. Older ones are dropped.
const REFUSED_MAX: u64 = 1_000;

/// Makes steps on this node.
#[derive(Debug)]
pub(super) struct TriggerWorker {
    tasks: Arc<dyn TaskStore>,
    jobs: TriggerTasks,
    clock: Arc<dyn MachineClock>,
    entropy: Arc<dyn EntropySource>,
    node: NodeHandle,
    process: ProcessId,
    /// Steps that are being made.
    held: Mutex<BTreeMap<StepId, TaskId>>,
}

/// What became of a message.
enum MessageOutcome {
    /// The job has received it, now or before.
    Received,
    /// It can never be received, for this reason.
    Refused(String),
    /// It is tried again later.
    Postponed,
}

impl TriggerWorker {
    pub(super) fn new(
        tasks: Arc<dyn TaskStore>,
        jobs: TriggerTasks,
        clock: Arc<dyn MachineClock>,
        entropy: Arc<dyn EntropySource>,
        node: NodeHandle,
    ) -> Self {
        let process = ProcessId::new(&format!("cronhold:{}:{:032x}", std::process::id(), entropy.bits()));
        Self { tasks, jobs, clock, entropy, node, process, held: Mutex::default() }
    }

    /// Registers the class, so that tasks of it can be created.
    pub(super) async fn register(&self) -> Result<(), Fault> {
        let now = self.tasks.time().await?;
        let process = WorkerProcess {
            id: self.process.clone(),
            queue: queue(),
            classes: vec![class()],
            concurrency: 1,
            started_at: now,
            beat_at: now,
            busy: 0,
            is_quiet: false,
            signals: Vec::new(),
        };
        self.tasks.register(process, vec![(class(), class_config())]).await
    }

    /// Makes steps until it is dropped. The class has to be registered.
    pub(super) async fn run(&self) {
        tokio::join!(self.make_steps(), self.send_heartbeats());
    }

    async fn send_heartbeats(&self) {
        loop {
            self.clock.sleep(BEAT).await;
            let held = lock_mutex(&self.held).iter().map(|(step, task)| (*task, *step)).collect();
            let beat = ProcessHeartbeat { process: self.process.clone(), held, is_quiet: false, lease: LEASE };
            if self.tasks.heartbeat(beat).await.is_ok_and(|reply| reply.is_unknown) {
                // If it fails, the next heartbeat tries again.
                let _ = self.register().await;
            }
        }
    }

    async fn make_steps(&self) {
        let mut seen = None;
        loop {
            match self.lease().await {
                Ok(steps) if steps.is_empty() => seen = self.wait_for_arrivals(seen).await,
                Ok(steps) => {
                    for step in steps {
                        self.make_step(step).await;
                    }
                }
                Err(_) => self.clock.sleep(RETRY_WAIT).await,
            }
        }
    }

    async fn lease(&self) -> Result<Vec<LeasedStep>, Fault> {
        let steps = (0..STEPS_MAX).map(|_| StepId::from_random(self.entropy.bits().to_be_bytes())).collect();
        let classes = vec![LeaseClass { name: class(), has_startup: false }];
        let request = LeaseRequest { queue: queue(), classes, steps, lease: LEASE, limits: WINDOW };
        let leased = self.tasks.lease(request).await?;
        let mut held = lock_mutex(&self.held);
        held.extend(leased.iter().map(|leased| (leased.step, leased.window.task.id)));
        drop(held);
        Ok(leased)
    }

    /// Waits until a task may be ready.
    async fn wait_for_arrivals(&self, seen: Option<ArrivalMark>) -> Option<ArrivalMark> {
        let queue = queue();
        let wait = match (self.tasks.next_due().await, self.tasks.time().await) {
            (Ok(Some(due)), Ok(now)) => due.since(now).min(LOOK_EVERY),
            _ => LOOK_EVERY,
        };
        tokio::select! {
            biased;
            mark = self.tasks.arrivals(&queue, seen) => Some(mark),
            () = self.clock.sleep(wait.max(Span::from_millis(1))) => seen,
        }
    }

    async fn make_step(&self, leased: LeasedStep) {
        let LeasedStep { step, call, window, .. } = leased;
        let task = window.task.id;
        match call {
            StepCall::Shutdown => {
                self.commit(TaskUnit::step(task, step, StepEnding::ShutDown(None), Vec::new())).await;
                // If it fails, the next look at all tasks deletes it.
                let _ = self.jobs.delete(task).await;
            }
            StepCall::Perform => {
                let begun = self.clock.uptime();
                let acts = self.receive(&window).await;
                if window.task.rate_count > QUICK_STEPS {
                    self.clock.sleep(SLOW_STEP.minus(self.clock.uptime().minus(begun))).await;
                }
                fail::point("daemon-messages-received");
                self.commit(TaskUnit::step(task, step, StepEnding::Completed, acts)).await;
                fail::point("daemon-messages-taken");
            }
        }
        lock_mutex(&self.held).remove(&step);
    }

    /// Sends the messages of a window to the job. Returns what the step does with them.
    async fn receive(&self, window: &TaskWindow) -> Vec<TaskAct> {
        let task = window.task.id;
        let port = window.inports.iter().find(|port| port.name == in_port()).filter(|port| port.size > 0);
        let (Some(port), Some(job)) = (port, job_of(&window.aliases)) else { return Vec::new() };
        let outcomes = join_all(self.requests(task, &job, port)).await;
        let count = outcomes.iter().take_while(|outcome| !matches!(outcome, MessageOutcome::Postponed)).count();
        let mut acts = Vec::new();
        if count > 0 {
            let target = PortTarget::new(task, PortDirection::In, in_port());
            acts.push(TaskAct::Take { port: target, position: port.position, count: count as u64 });
        }
        let refused = window.outports.iter().find(|port| port.name == refused_port()).map_or(0, |port| port.size);
        acts.extend(refuse(task, &job, &port.items[..count], &outcomes[..count], refused));
        let target = TaskTarget::Id(task);
        if count < outcomes.len() {
            let at = self.tasks.time().await.ok().map(|now| now.plus(RETRY_WAIT));
            acts.push(TaskAct::Run { task: target, forced: false, at });
        } else if port.size > outcomes.len() as u64 {
            acts.push(TaskAct::Run { task: target, forced: false, at: None });
        }
        acts
    }

    /// The requests that turn messages into triggers.
    fn requests<'s>(
        &'s self,
        task: TaskId,
        job: &'s JobId,
        port: &'s PortWindow,
    ) -> Vec<Pin<Box<dyn Future<Output = MessageOutcome> + 's>>> {
        let request = move |(item, position): (&PortItem, u64)| {
            let trigger = TriggerId::parse(&format!("message {task}.{position}")).expect("it is short and printable");
            let message = TriggerMessage { channel: channel_of(item, task), message: item.data.clone() };
            let command = Command::Trigger {
                job: job.clone(),
                args: BTreeMap::new(),
                id: RunId::from_key(self.clock.now(), &format!("{job} {trigger}")),
                trigger,
                message: Some(Box::new(message)),
            };
            Box::pin(async move {
                match self.node.request(Actor::Channel, command).await {
                    Ok(_) => MessageOutcome::Received,
                    Err(RequestError::Rejected(rejection)) if is_for_good(&rejection) => {
                        MessageOutcome::Refused(rejection.to_string())
                    }
                    Err(_) => MessageOutcome::Postponed,
                }
            }) as Pin<Box<dyn Future<Output = MessageOutcome>>>
        };
        port.items.iter().zip(port.position..).map(request).collect()
    }

    /// Commits the end of a step. It is sent again until the store replies, or the step is lost.
    async fn commit(&self, unit: TaskUnit) {
        loop {
            match self.tasks.commit(vec![unit.clone()]).await.pop() {
                Some(Err(TaskUnitError::Fault(fault))) if fault.is_transient() => self.clock.sleep(RETRY_WAIT).await,
                Some(Err(TaskUnitError::Refused(TaskRefusal::StepLost(_)))) | Some(Ok(_)) | None => return,
                Some(Err(error)) => {
                    warn!(event = "trigger_step_failed", "cannot take messages of a trigger: {error}");
                    return;
                }
            }
        }
    }
}

/// Whether a message can never be received. A job that is gone ends its task, and one with too many triggers goes on later.
fn is_for_good(rejection: &Rejection) -> bool {
    matches!(rejection, Rejection::Args(_) | Rejection::TriggerArg { .. } | Rejection::MessageTooLarge { .. })
}

/// The channel of a message. One that was written to the port by hand has the channel of the task.
fn channel_of(item: &PortItem, task: TaskId) -> Channel {
    let named = item.context.as_ref().and_then(|context| context.get("channel")?.to::<String>().ok());
    named.and_then(|name| Channel::parse(&name).ok()).unwrap_or_else(|| Channel::of_task(task))
}

/// Moves the messages that cannot be received to the port `refused`, and logs them.
fn refuse(task: TaskId, job: &JobId, items: &[PortItem], outcomes: &[MessageOutcome], kept: u64) -> Vec<TaskAct> {
    let refused = items.iter().zip(outcomes).filter_map(|(item, outcome)| match outcome {
        MessageOutcome::Refused(error) => {
            let channel = channel_of(item, task);
            warn!(event = "message_refused", job = %job, channel = %channel, "message refused: {error}");
            let data = JsonObject::new()
                .with("channel", JsonText::of_text(channel.as_str()))
                .with("message", item.data.clone())
                .with("error", JsonText::of_text(error));
            Some(PortItem::new(data.to_json()))
        }
        MessageOutcome::Received | MessageOutcome::Postponed => None,
    });
    let items: Vec<PortItem> = refused.collect();
    if items.is_empty() {
        return Vec::new();
    }
    let port = PortTarget::new(task, PortDirection::Out, refused_port());
    let surplus = (kept + items.len() as u64).saturating_sub(REFUSED_MAX).min(kept);
    let drop = TaskAct::Pop { port: port.clone(), count: surplus, or_default: false };
    let write = TaskAct::Write { port, items, as_default: false, notify: false };
    [drop, write].into_iter().skip(usize::from(surplus == 0)).collect()
}

/// Waits for all futures, and returns their outputs in order.
async fn join_all<T>(mut futures: Vec<Pin<Box<dyn Future<Output = T> + '_>>>) -> Vec<T> {
    let mut outputs: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(move |context| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *output = Some(value);
            }
        }
        match outputs.iter().all(Option::is_some) {
            true => Poll::Ready(outputs.iter_mut().filter_map(Option::take).collect()),
            false => Poll::Pending,
        }
    })
    .await
}

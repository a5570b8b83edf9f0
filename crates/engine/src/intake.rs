//! How the world talks to a node: one bounded queue of inputs. Requests are answered; reports of programs are kept
//! until they are durable.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use cronhold_core::RunId;
use cronhold_core::command::{Command, Report};
use cronhold_core::decision::{Answer, Rejection};
use cronhold_core::record::Actor;
use cronhold_schedule::Span;
use cronhold_schedule::calendar::Calendars;
use cronhold_store::Fault;

use crate::meter::{Meter, Reading};
use crate::ports::{Clock, Entropy};
use crate::queue::Queue;

/// Inputs that may wait.
const INPUTS_MAX: usize = 16 * 1024;
/// Inputs from which on requests are refused, so that there is always room for reports of programs.
const ASKS_MAX: usize = 12 * 1024;

/// Everything that can come in.
#[derive(Debug)]
pub(crate) enum Input {
    /// Someone asks for something, and some want it by an uptime or not at all.
    Ask { actor: Actor, command: Command, by: Option<Span>, reply: Reply },
    /// A program reports.
    Report { run: RunId, report: Report },
    /// Jobs that run at each start of a node run now.
    Begin,
    /// Calendars are others from now on.
    Calendars(Arc<Calendars>),
    /// The node has to stop.
    Stop,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The core said no.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] Fault),
    /// Too many requests wait.
    #[error("the node has too much to do")]
    Busy,
    /// It could not be begun in the time that it was to be begun in.
    #[error("the node was too late for it")]
    Late,
    /// The node has stopped.
    #[error("the node is stopping")]
    Stopping,
}

/// The way to talk to a node. Clones share it.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(crate) inputs: Queue<Input>,
    pub(crate) meter: Arc<Meter>,
    is_stopping: Arc<AtomicBool>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

/// Where an answer goes, once.
#[derive(Debug, Clone)]
pub(crate) struct Reply(Arc<Mutex<Slot>>);

#[derive(Debug, Default)]
struct Slot {
    answer: Option<Result<Answer, Refused>>,
    waker: Option<Waker>,
}

impl Handle {
    pub(crate) fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self { inputs: Queue::new(INPUTS_MAX), meter: Arc::default(), is_stopping: Arc::default(), clock, entropy }
    }

    /// Asks for something and waits for the answer.
    pub async fn ask(&self, actor: Actor, command: Command) -> Result<Answer, Refused> {
        self.ask_by(actor, command, None).await
    }

    /// Asks for something that is not done at all when the node cannot begin with it within that time.
    pub async fn ask_within(&self, actor: Actor, command: Command, within: Span) -> Result<Answer, Refused> {
        self.ask_by(actor, command, Some(self.clock.uptime().plus(within))).await
    }

    async fn ask_by(&self, actor: Actor, command: Command, by: Option<Span>) -> Result<Answer, Refused> {
        let reply = Reply(Arc::default());
        let input = Input::Ask { actor, command, by, reply: reply.clone() };
        if self.inputs.len() >= ASKS_MAX {
            return Err(Refused::Busy);
        }
        self.inputs.offer(input).map_err(|_| Refused::Busy)?;
        reply.wait().await
    }

    /// Reports what became of a program. Waits while the node has too much to do.
    pub async fn report(&self, run: RunId, report: Report) {
        self.inputs.send(Input::Report { run, report }).await;
    }

    /// Says that everything is there that has to be there at the start of a node, so that jobs that run at each start
    /// can run. Until then they wait, because a job may be about to be changed or removed.
    pub async fn begin(&self) {
        self.inputs.send(Input::Begin).await;
    }

    /// Replaces the calendars that schedules can name. What is asked afterwards is decided with them; whoever replaces
    /// them asks for the next occurrences of jobs that name them to be computed again.
    pub async fn renew_calendars(&self, calendars: Arc<Calendars>) {
        self.inputs.send(Input::Calendars(calendars)).await;
    }

    /// Asks the node to stop. Programs go on.
    pub async fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.inputs.send(Input::Stop).await;
    }

    /// Whether the node was asked to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// The id of a run that nothing else tells apart.
    pub fn random_run_id(&self) -> RunId {
        let bits = self.entropy.bits().to_be_bytes();
        let mut random = [0; 10];
        random.copy_from_slice(&bits[..10]);
        RunId::from_random(self.clock.now(), random)
    }

    /// What the node has counted.
    pub fn reading(&self) -> Reading {
        self.meter.read()
    }
}

impl Reply {
    pub(crate) fn answer(&self, answer: Result<Answer, Refused>) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.answer = Some(answer);
        if let Some(waker) = slot.waker.take() {
            drop(slot);
            waker.wake();
        }
    }

    async fn wait(&self) -> Result<Answer, Refused> {
        poll_fn(|context| {
            let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(answer) = slot.answer.take() {
                return Poll::Ready(answer);
            }
            slot.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

//! The steps that executables make now: where the messages for each of them go, and how each can be cancelled.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use cronhold_core::task::StepId;
use cronhold_store::lock_mutex;

use super::message::WorkerMessage;

/// Messages of an executable that its step has not processed. The executable waits when there are more.
const STEP_MESSAGES_MAX: usize = 256;

/// The steps that executables make.
#[derive(Debug, Default)]
pub(super) struct OpenSteps(Mutex<BTreeMap<StepId, OpenStep>>);

#[derive(Debug, Clone)]
struct OpenStep {
    /// The process that makes the step; `None` while it waits for one.
    process: Option<u64>,
    sender: SyncSender<StepInput>,
}

/// What the thread of a step receives.
#[derive(Debug)]
pub(super) enum StepInput {
    Message(WorkerMessage),
    /// A line of an executable that speaks no protocol.
    Line(String),
    /// The step is not wanted any more.
    Cancelled(CancelReason),
    /// The process has ended, with this explanation.
    Ended(String),
}

/// Why a step is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    /// Another worker makes it.
    LeaseLost,
    /// The worker process stops at once.
    Stopping,
}

/// A point in time on the clock that only counts forward.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepDeadline(Instant);

impl CancelReason {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::LeaseLost => "lease lost",
            Self::Stopping => "stopping",
        }
    }
}

impl StepDeadline {
    #[expect(clippy::disallowed_methods, reason = "an executable that does not answer has no event to wait for")]
    pub(super) fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    #[expect(clippy::disallowed_methods, reason = "an executable that does not answer has no event to wait for")]
    pub(super) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// The next input; `None` when the time is over.
    pub(super) fn receive(self, inputs: &Receiver<StepInput>) -> Option<StepInput> {
        inputs.recv_timeout(self.left()).ok()
    }
}

impl OpenSteps {
    /// Adds a step, and returns what it receives.
    pub(super) fn open(&self, step: StepId) -> Receiver<StepInput> {
        let (sender, receiver) = sync_channel(STEP_MESSAGES_MAX);
        lock_mutex(&self.0).insert(step, OpenStep { process: None, sender });
        receiver
    }

    pub(super) fn assign(&self, step: StepId, process: u64) {
        if let Some(open) = lock_mutex(&self.0).get_mut(&step) {
            open.process = Some(process);
        }
    }

    pub(super) fn close(&self, step: StepId) {
        lock_mutex(&self.0).remove(&step);
    }

    /// Sends an input to a step of a process, and returns whether the process makes it. Waits while the step has many.
    pub(super) fn send(&self, process: u64, step: StepId, input: StepInput) -> bool {
        let open = lock_mutex(&self.0).get(&step).filter(|open| open.process == Some(process)).cloned();
        // A step whose thread has just ended needs nothing more.
        open.is_some_and(|open| open.sender.send(input).is_ok())
    }

    /// The only step of a process.
    pub(super) fn step_of(&self, process: u64) -> Option<StepId> {
        lock_mutex(&self.0).iter().find(|(_, open)| open.process == Some(process)).map(|(step, _)| *step)
    }

    /// Cancels a step, or all of them.
    pub(super) fn cancel(&self, step: Option<StepId>, why: CancelReason) {
        let steps = lock_mutex(&self.0);
        let wanted = steps.iter().filter(|(id, _)| step.is_none_or(|step| step == **id));
        let senders: Vec<SyncSender<StepInput>> = wanted.map(|(_, open)| open.sender.clone()).collect();
        drop(steps);
        for sender in senders {
            // A step with so many messages is about to process them; its commit is refused if its lease is lost.
            let _ = sender.try_send(StepInput::Cancelled(why));
        }
    }

    /// Tells the steps of a process that it has ended.
    pub(super) fn end_process(&self, process: u64, why: &str) {
        let steps = lock_mutex(&self.0);
        let ended = steps.values().filter(|open| open.process == Some(process));
        let senders: Vec<SyncSender<StepInput>> = ended.map(|open| open.sender.clone()).collect();
        drop(steps);
        for sender in senders {
            let _ = sender.send(StepInput::Ended(why.to_owned()));
        }
    }
}

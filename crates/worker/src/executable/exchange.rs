//! The conversation with a process about one step of a task, or one job of a Sidekiq client. What differs between the two
//! is behind [`ExchangePeer`].

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use cronhold_core::task::{JsonText, StepId};

use super::message::{self, MessageEnding, RowChanges, StepNeed, WorkerMessage};
use super::open_steps::{CancelReason, StepDeadline, StepInput};
use super::pool::{ExecutablePool, ExecutableProcess};
use super::process::with_stderr;
use crate::worker::{StepResult, StepStop};

/// How long an executable may take to end a step that was cancelled because of its deadline.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// Carries out what an executable sends about its step.
pub(super) trait ExchangePeer {
    /// Carries out acts. An error fails the step.
    fn apply(&mut self, changes: &RowChanges) -> StepResult;

    /// What was asked for; an error text if it does not exist.
    fn answer(&mut self, need: &StepNeed) -> StepResult<Result<JsonText, String>>;
}

/// The conversation about one step.
pub(super) struct StepExchange<'p> {
    pub(super) pool: &'p ExecutablePool,
    pub(super) process: &'p Arc<ExecutableProcess>,
    pub(super) id: StepId,
}

impl StepExchange<'_> {
    /// Receives messages until the step ends, for at most this time.
    pub(super) fn run(&self, peer: &mut dyn ExchangePeer, time: Duration, inputs: &Receiver<StepInput>) -> StepResult {
        let deadline = StepDeadline::after(time);
        loop {
            let Some(input) = deadline.receive(inputs) else { return self.time_out(time, inputs) };
            match input {
                StepInput::Message(WorkerMessage::Changes { changes, .. }) => {
                    peer.apply(&changes).inspect_err(|_| self.cancel("it failed"))?;
                }
                StepInput::Message(WorkerMessage::Need { id, need, .. }) => {
                    let found = peer.answer(&need).inspect_err(|_| self.cancel("it failed"))?;
                    self.pool.send(&self.process.line, message::have(self.id, &id, found));
                }
                StepInput::Message(WorkerMessage::End { changes, ending, .. }) => {
                    if let MessageEnding::Fail(error) = ending {
                        return Err(StepStop::Failed(error));
                    }
                    peer.apply(&changes)?;
                    return match ending {
                        MessageEnding::Suspend => Err(StepStop::Suspended),
                        MessageEnding::Done | MessageEnding::Fail(_) => Ok(()),
                    };
                }
                StepInput::Message(WorkerMessage::Ready(_) | WorkerMessage::Log { .. }) | StepInput::Line(_) => {}
                StepInput::Cancelled(why) => {
                    self.cancel(why.as_str());
                    return Err(match why {
                        CancelReason::LeaseLost => StepStop::Repeated("its lease is lost".to_owned()),
                        CancelReason::Stopping => StepStop::GivenBack,
                    });
                }
                StepInput::Ended(why) => return Err(StepStop::Repeated(format!("the executable was lost: {why}"))),
            }
        }
    }

    /// Tells the process that the step is over, and ignores what it still sends.
    fn cancel(&self, why: &str) {
        self.process.forget_step(self.id);
        self.pool.send(&self.process.line, message::cancel(self.id, why));
    }

    /// Cancels the step, and kills the process if it does not end it.
    fn time_out(&self, time: Duration, inputs: &Receiver<StepInput>) -> StepResult {
        self.pool.send(&self.process.line, message::cancel(self.id, "deadline"));
        let deadline = StepDeadline::after(CANCEL_WAIT);
        let has_ended = loop {
            match deadline.receive(inputs) {
                Some(StepInput::Message(WorkerMessage::End { .. }) | StepInput::Ended(_)) => break true,
                Some(_) => {}
                None => break false,
            }
        };
        if !has_ended {
            self.process.forget_step(self.id);
            self.process.line.kill();
        }
        let message = format!("timed out after {} ms", time.as_millis());
        Err(StepStop::Failed(with_stderr(message, &self.process.line.last_stderr())))
    }
}

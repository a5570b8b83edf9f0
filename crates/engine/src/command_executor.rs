//! Carries out commands on a shared store without a node, so that the command line works without a daemon. It starts no
//! programs, sends no heartbeats and performs no effects; the nodes are notified of what it writes.

use std::sync::Arc;

use cronhold_core::command::{Command, CommandStamp};
use cronhold_core::record::{Actor, RunOwner};
use cronhold_core::{DecisionContext, NodeId};
use cronhold_schedule::Instant;
use cronhold_store::{CommandOutcome, Fault, StampedCommand, Store, WriterSession, all_nodes, has_foreign_nodes};

use crate::intake::{NodeHandle, NodeInput, RequestError, RequestReply};
use crate::ports::{EntropySource, MachineClock};

/// Commands that are carried out together.
const BATCH_MAX: usize = 256;
/// Records in its cache. It is used for a few requests only.
const CACHE_MAX: usize = 1_000;

/// Carries out commands on a store without a node.
#[derive(Debug)]
pub struct CommandExecutor {
    store: Arc<dyn Store>,
    world: DecisionContext,
    /// The node id in the stamps of its commands. No node has it, and no run is ever owned by it.
    id: NodeId,
    handle: NodeHandle,
    /// Starts with the first request.
    session: Option<WriterSession>,
}

/// A command that waits for its reply.
struct WaitingRequest {
    actor: Actor,
    command: Command,
    reply: RequestReply,
}

impl CommandExecutor {
    /// Creates an executor, and the handle that sends commands to it. Of `world` it uses the zones and the calendars.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn MachineClock>,
        entropy: Arc<dyn EntropySource>,
        world: DecisionContext,
    ) -> (Self, NodeHandle) {
        let id = NodeId::from_bits(entropy.bits());
        let handle = NodeHandle::new(clock, entropy);
        let has_foreign = has_foreign_nodes(&*store);
        let has_tasks = store.task_store().is_some();
        let world = DecisionContext { is_shared: store.is_shared(), is_node: false, has_foreign, has_tasks, ..world };
        (Self { store, world, id, handle: handle.clone(), session: None }, handle)
    }

    /// Runs until its handle stops it. If the store fails, the waiting requests get the error, and the next request tries
    /// again.
    pub async fn run(mut self) {
        loop {
            self.handle.inputs.ready().await;
            let mut waiting = Vec::new();
            let mut is_stopping = false;
            for input in self.handle.inputs.take(BATCH_MAX) {
                match input {
                    NodeInput::Request { actor, command, reply, .. } => {
                        waiting.push(WaitingRequest { actor, command, reply });
                    }
                    NodeInput::Calendars(calendars) => self.world.calendars = calendars,
                    NodeInput::Stop => is_stopping = true,
                    // It has no programs, and its start is not the start of a node.
                    NodeInput::Report { .. }
                    | NodeInput::Delivery { .. }
                    | NodeInput::Probe { .. }
                    | NodeInput::Start
                    | NodeInput::Keeper(_) => {}
                }
            }
            if !waiting.is_empty() {
                self.carry_out(waiting).await;
            }
            if is_stopping {
                return self.refuse_requests();
            }
        }
    }

    /// Carries out commands and replies to each.
    async fn carry_out(&mut self, waiting: Vec<WaitingRequest>) {
        let (commands, replies) = match self.prepare().await {
            Ok((at, owner)) => {
                let stamped = |WaitingRequest { actor, command, reply }| {
                    (StampedCommand { stamp: CommandStamp { at, actor, owner }, command }, reply)
                };
                waiting.into_iter().map(stamped).unzip::<_, _, Vec<StampedCommand>, Vec<RequestReply>>()
            }
            Err(fault) => {
                return waiting.iter().for_each(|waiting| waiting.reply.send(Err(fault.clone().into())));
            }
        };
        let Some(session) = &mut self.session else { return };
        let outcomes = session.turn(&self.world, &commands).await;
        for (reply, outcome) in replies.into_iter().zip(outcomes) {
            reply.send(match outcome {
                CommandOutcome::Done { done, .. } => Ok(done.answer),
                CommandOutcome::Rejected(rejection) => Err(rejection.into()),
                CommandOutcome::Contended => Err(RequestError::Contended),
                CommandOutcome::Unreadable(record) => Err(Fault::Unreadable(record).into()),
                CommandOutcome::Failed(fault) => Err(fault.into()),
            });
        }
    }

    /// Starts the session if there is none, and reads the store's time and the live nodes.
    async fn prepare(&mut self) -> Result<(Instant, RunOwner), Fault> {
        let incarnation = match &self.session {
            Some(session) => session.writer(),
            None => self.session.insert(WriterSession::new(Arc::clone(&self.store), CACHE_MAX).await?).writer(),
        };
        let now = self.store.time().await?;
        let nodes = all_nodes(&*self.store).await?;
        self.world.nodes = nodes.into_iter().filter(|node| node.gone > now).collect();
        Ok((now, RunOwner { node: self.id, incarnation }))
    }

    /// Refuses all requests that still wait.
    fn refuse_requests(&self) {
        for input in self.handle.inputs.take(usize::MAX) {
            if let NodeInput::Request { reply, .. } = input {
                reply.send(Err(RequestError::Stopping));
            }
        }
    }
}

#[cfg(test)]
mod tests;

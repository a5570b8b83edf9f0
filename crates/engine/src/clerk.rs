//! A clerk: it carries out what is asked on a store that others share, and is no node. It starts nothing, is not heard
//! of, and performs no effects; the nodes hear of what it has written. So the command line can work without a daemon.

use std::sync::Arc;

use cronhold_core::command::{Command, Stamp};
use cronhold_core::decision::Rejection;
use cronhold_core::record::{Actor, Owner};
use cronhold_core::{NodeId, World};
use cronhold_schedule::Instant;
use cronhold_store::{Asked, Desk, Fault, Outcome, Store, all_nodes, has_foreign_nodes};

use crate::intake::{Handle, Input, Refused, Reply};
use crate::ports::{Clock, Entropy};

/// Requests that are carried out together.
const BATCH_MAX: usize = 256;
/// Records that it remembers: a clerk is there for a few requests.
const REMEMBERS: usize = 1_000;

/// Carries out what is asked, without a node.
#[derive(Debug)]
pub struct Clerk {
    store: Arc<dyn Store>,
    world: World,
    /// In whose name it asks. No node has this identity, and nothing ever belongs to it.
    name: NodeId,
    handle: Handle,
    /// Where it works, once something was asked.
    desk: Option<Desk>,
}

/// Someone who waits for an answer.
struct Waiting {
    actor: Actor,
    command: Command,
    reply: Reply,
}

impl Clerk {
    /// A clerk and the way to talk to it. Of the world it takes zones and calendars.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        world: World,
    ) -> (Self, Handle) {
        let name = NodeId::from_bits(entropy.bits());
        let handle = Handle::new(clock, entropy);
        // Whoever drains starts nothing, and everything else is decided as usual.
        let has_foreign = has_foreign_nodes(&*store);
        let world = World { is_shared: store.is_shared(), is_draining: true, has_foreign, ..world };
        (Self { store, world, name, handle: handle.clone(), desk: None }, handle)
    }

    /// Works until it is asked to stop. A store that fails is told to whoever asked, and asked anew with the next request.
    pub async fn run(mut self) {
        loop {
            self.handle.inputs.ready().await;
            let mut waiting = Vec::new();
            let mut is_stopping = false;
            for input in self.handle.inputs.take(BATCH_MAX) {
                match input {
                    Input::Ask { actor, command, reply, .. } => waiting.push(Waiting { actor, command, reply }),
                    Input::Calendars(calendars) => self.world.calendars = calendars,
                    Input::Stop => is_stopping = true,
                    // It has no programs, and its start is not the start of a node.
                    Input::Report { .. } | Input::Begin => {}
                }
            }
            if !waiting.is_empty() {
                self.carry_out(waiting).await;
            }
            if is_stopping {
                return self.turn_away();
            }
        }
    }

    /// Carries out requests and answers each.
    async fn carry_out(&mut self, waiting: Vec<Waiting>) {
        let (asked, replies) = match self.prepare().await {
            Ok((at, owner)) => {
                let stamped =
                    |Waiting { actor, command, reply }| (Asked { stamp: Stamp { at, actor, owner }, command }, reply);
                waiting.into_iter().map(stamped).unzip::<_, _, Vec<Asked>, Vec<Reply>>()
            }
            Err(fault) => {
                return waiting.iter().for_each(|waiting| waiting.reply.answer(Err(fault.clone().into())));
            }
        };
        let Some(desk) = &mut self.desk else { return };
        let outcomes = desk.turn(&self.world, &asked).await;
        for (reply, outcome) in replies.into_iter().zip(outcomes) {
            reply.answer(match outcome {
                Outcome::Done { done, .. } => Ok(done.answer),
                Outcome::Rejected(Rejection::Draining) => Err(Rejection::NotANode.into()),
                Outcome::Rejected(rejection) => Err(rejection.into()),
                Outcome::Failed(fault) => Err(fault.into()),
            });
        }
    }

    /// Takes a seat if it has none, and looks what time it is and who is there.
    async fn prepare(&mut self) -> Result<(Instant, Owner), Fault> {
        let incarnation = match &self.desk {
            Some(desk) => desk.writer(),
            None => self.desk.insert(Desk::new(Arc::clone(&self.store), REMEMBERS).await?).writer(),
        };
        let now = self.store.time().await?;
        let nodes = all_nodes(&*self.store).await?;
        self.world.nodes = nodes.into_iter().filter(|node| node.gone > now).collect();
        Ok((now, Owner { node: self.name, incarnation }))
    }

    /// Whoever still waits for an answer is told that there will be none.
    fn turn_away(&self) {
        for input in self.handle.inputs.take(usize::MAX) {
            if let Input::Ask { reply, .. } = input {
                reply.answer(Err(Refused::Stopping));
            }
        }
    }
}

#[cfg(test)]
mod tests;

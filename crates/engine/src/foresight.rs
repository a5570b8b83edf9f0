//! Deciding a little ahead of time. When many jobs are due at one instant, deciding about them takes longer than anything
//! else that a node can do something about. While it has nothing else to do shortly before, it decides as if the instant
//! were there already, and holds back what it has decided until it is.
//!
//! Nothing is sent early. Whatever changes meanwhile lets the units fail that rest on it, and they are decided again.

use std::collections::VecDeque;
use std::sync::Arc;

use cronhold_core::World;
use cronhold_schedule::{Instant, Span};
use cronhold_store::Prepared;

use crate::node::{Node, Turn};

/// Claims are decided so long before their instant.
const AHEAD: Span = Span::from_millis(200);
/// What was decided as if it were on time is not sent when it is later than this: the node stood still meanwhile.
const LATE: Span = Span::from_secs(1);
/// Turns that are decided ahead; what does not fit is decided when it is due.
const TURNS_MAX: usize = 4;

/// Claims of one instant that were decided before it.
pub(crate) struct Foreseen {
    at: Instant,
    /// What they were decided with beside records, which nothing compares when they are sent.
    world: World,
    turns: VecDeque<(Prepared, Turn)>,
    /// Whether what came in before the instant was looked at since then.
    has_waited: bool,
}

impl Node {
    /// Decides about claims that are due in a moment, when there are enough of them.
    pub(crate) async fn foresee(&mut self, now: Instant) -> Option<Foreseen> {
        let at = self.foreseeable(now).filter(|at| *at <= now.plus(AHEAD))?;
        if !self.may_claim() {
            return None;
        }
        let uptime = self.ports.clock.uptime();
        let mut foreseen = Foreseen { at, world: self.world.clone(), turns: VecDeque::new(), has_waited: false };
        while foreseen.turns.len() < TURNS_MAX {
            let batch = self.gather_claims(at, uptime);
            if batch.is_empty() {
                break;
            }
            // Where the store could not be asked, everything is in the plan again.
            let Some(turn) = self.prepare(at, batch).await else { break };
            foreseen.turns.push_back(turn);
        }
        Some(foreseen).filter(|foreseen| !foreseen.turns.is_empty())
    }

    /// How long it is until something that was foreseen is due, or something can be foreseen.
    pub(crate) fn until_foresight(&self, foreseen: Option<Instant>, now: Instant) -> Option<Span> {
        let next = foreseen.or_else(|| self.foreseeable(now).map(|at| at.minus(AHEAD)).filter(|at| *at > now));
        next.map(|next| next.since(now))
    }

    /// The next of the turns that were decided ahead, when their time has come. What came in before is decided first: a
    /// run that has ended must not be in the way of the next.
    pub(crate) fn take_foreseen(&mut self, from: &mut Option<Foreseen>, now: Instant) -> Option<(Prepared, Turn)> {
        let foreseen = from.as_mut().filter(|foreseen| foreseen.at <= now)?;
        let is_late = now.since(foreseen.at) > LATE;
        if is_late || !self.may_claim() || !foreseen.is_same_world(&self.world) {
            // It is decided again, as everything else that is due.
            let turns = from.take().map(|foreseen| foreseen.turns).unwrap_or_default();
            turns.into_iter().for_each(|(_, turn)| self.put_in_plan(turn));
            return None;
        }
        let has_others = !(self.handle.inputs.is_empty() && self.again.is_empty() && self.unsettled.is_empty());
        if has_others && !std::mem::replace(&mut foreseen.has_waited, true) {
            return None;
        }
        let next = foreseen.turns.pop_front();
        if foreseen.turns.is_empty() {
            *from = None;
        }
        next.map(|(mut prepared, mut turn)| {
            // Nothing compares what a decision has seen that writes nothing.
            prepared.doubt();
            turn.begin = self.ports.clock.uptime();
            (prepared, turn)
        })
    }

    /// The next instant with so many claims that deciding ahead is worth while.
    fn foreseeable(&self, now: Instant) -> Option<Instant> {
        self.plan.crowd(self.options.foresees).filter(|at| *at > now)
    }

    fn may_claim(&mut self) -> bool {
        let uptime = self.ports.clock.uptime();
        !self.is_stopping && self.away.is_none() && self.is_sure(uptime)
    }
}

impl Foreseen {
    /// When it is due.
    pub(crate) fn at(&self) -> Instant {
        self.at
    }

    fn is_same_world(&self, world: &World) -> bool {
        let (own, now) = (&self.world, world);
        Arc::ptr_eq(&own.calendars, &now.calendars)
            && Arc::ptr_eq(&own.nodes, &now.nodes)
            && own.is_draining == now.is_draining
            && own.has_foreign == now.has_foreign
    }
}

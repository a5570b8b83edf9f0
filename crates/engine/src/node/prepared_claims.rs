//! Decides claims shortly before they are due. If many jobs are due at one instant, deciding them takes longer than
//! anything else that a node can influence. So an idle node decides them in advance, as if the instant had come, and
//! submits them together when it comes. The store may execute them in the meantime.
//!
//! Nothing takes effect early. If a record changes meanwhile, the units that depend on it fail and are decided again.

use std::sync::Arc;

use cronhold_core::DecisionContext;
use cronhold_schedule::{Instant, Span};
use cronhold_store::{AheadTurn, PreparedTurn, StampedCommand};

use super::NodeLoop;
use super::batch::CommandBatch;
use crate::pending_commands::CommandOrigin;

/// How long before their instant claims are decided.
const AHEAD: Span = Span::from_millis(250);
/// Claims that were decided for an instant are not submitted later than this after it: the node was suspended meanwhile.
const LATE: Span = Span::from_secs(1);
/// Claims of one instant that are decided and not submitted yet.
pub(super) struct PreparedClaims {
    at: Instant,
    /// What the claims were decided with beside records. A commit does not compare it.
    world: DecisionContext,
    turn: AheadTurn,
    batch: CommandBatch,
    /// Whether inputs from before the instant were handled since it came.
    has_yielded: bool,
}

impl PreparedClaims {
    /// The instant of the claims.
    pub(super) fn at(&self) -> Instant {
        self.at
    }

    fn is_same_world(&self, now: &DecisionContext) -> bool {
        let then = &self.world;
        Arc::ptr_eq(&then.calendars, &now.calendars)
            && Arc::ptr_eq(&then.nodes, &now.nodes)
            && Arc::ptr_eq(&then.run_channels, &now.run_channels)
            && then.is_draining == now.is_draining
            && then.keeper_problem.is_some() == now.keeper_problem.is_some()
            && then.has_foreign == now.has_foreign
    }
}

impl NodeLoop {
    /// Decides the claims that are due in a moment, if there are enough of them.
    pub(super) async fn prepare_ahead(&mut self, now: Instant) -> Option<PreparedClaims> {
        let at = self.next_crowded_instant(now).filter(|at| *at <= now.plus(AHEAD))?;
        if !self.may_claim() {
            return None;
        }
        self.world.run_channels = self.context.options.run_subscriptions.get();
        let uptime = self.context.uptime();
        let (turn, batch) = (self.session.begin_ahead(), self.stamp(at, Vec::new()));
        let mut claims = PreparedClaims { at, world: self.world.clone(), turn, batch, has_yielded: false };
        while claims.batch.commands.len() < claims.turn.commands_max() {
            let commands = self.claims_at(at, uptime);
            if commands.is_empty() {
                break;
            }
            let batch = self.stamp(at, commands);
            let commands: Vec<&StampedCommand> = batch.commands.iter().collect();
            match self.session.prepare_ahead(&mut claims.turn, &self.world, &commands).await {
                Ok(()) => claims.batch.append(batch),
                // The claims are decided again when they are taken from the plan.
                Err(_) => {
                    self.put_back_claims(batch);
                    break;
                }
            }
        }
        Some(claims).filter(|claims| !claims.batch.commands.is_empty())
    }

    /// How long it is until prepared claims are due, or until claims can be prepared.
    pub(super) fn until_prepared(&self, prepared: Option<Instant>, now: Instant) -> Option<Span> {
        let prepare_at = || self.next_crowded_instant(now).map(|at| at.minus(AHEAD)).filter(|at| *at > now);
        prepared.or_else(prepare_at).map(|next| next.since(now))
    }

    /// The prepared claims, if their instant has come. Inputs from before it are decided first: a run that has ended must
    /// not block the next.
    pub(super) fn take_prepared(
        &mut self,
        from: &mut Option<PreparedClaims>,
        now: Instant,
    ) -> Option<(PreparedTurn, CommandBatch)> {
        let claims = from.as_mut().filter(|claims| claims.at <= now)?;
        self.world.run_channels = self.context.options.run_subscriptions.get();
        let is_late = now.since(claims.at) > LATE;
        if is_late || !self.may_claim() || !claims.is_same_world(&self.world) {
            // The claims are decided again when they are taken from the plan.
            let claims = from.take()?;
            self.put_back_claims(claims.batch);
            return None;
        }
        let has_others = !self.context.handle.inputs.is_empty() || self.commands.has_retries();
        if has_others && !std::mem::replace(&mut claims.has_yielded, true) {
            return None;
        }
        let PreparedClaims { turn, mut batch, .. } = from.take()?;
        let mut prepared = turn.into_prepared();
        // No commit compares what a decision without writes was based on.
        prepared.invalidate_unwritten();
        batch.begin = self.context.uptime();
        Some((prepared, batch))
    }

    /// Puts claims that are not submitted back into the plan.
    fn put_back_claims(&mut self, batch: CommandBatch) {
        for (origin, _) in batch.origins {
            if let CommandOrigin::Planned(claim) = origin {
                let due = claim.due;
                self.agenda.reschedule(claim, due);
            }
        }
    }

    /// The next instant with enough claims to prepare them.
    fn next_crowded_instant(&self, now: Instant) -> Option<Instant> {
        self.agenda.crowded_instant(self.context.options.prepare_ahead_min).filter(|at| *at > now)
    }

    fn may_claim(&mut self) -> bool {
        let uptime = self.context.uptime();
        !self.is_stopping && self.store_health.is_available() && self.may_claim_at(uptime)
    }
}

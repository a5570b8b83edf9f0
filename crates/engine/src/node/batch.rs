//! Builds the next batch of commands from inputs and due items, and decides it. Items that another node should claim
//! first are deferred.

use cronhold_core::command::{Command, CommandStamp};
use cronhold_core::record::Actor;
use cronhold_schedule::{Instant, Span};
use cronhold_store::{CommandOutcome, PreparedTurn, StampedCommand};

use super::NodeLoop;
use crate::intake::{NodeInput, RequestError};
use crate::pending_commands::{CommandOrigin, PendingCommand};
use crate::plan::{DueItem, PlanItem};

/// Commands in one batch. They share a flush to disk, and the pages of tables and indexes that they change.
const BATCH_MAX: usize = 2_048;
/// Due items among them: few enough that the first are committed while the next are decided. Smaller batches were slower,
/// because they share less.
const DUE_MAX: usize = 512;
/// Late claims beside the due items. One of them can stand for thousands of occurrences, so they are few enough that
/// what becomes due meanwhile is not delayed for long.
const LATE_MAX: usize = 64;
/// While more is due than fits into a batch, inputs wait for at most this many batches. Most of them are reports of
/// programs that have just been started, which are not urgent.
const OVERLOAD_BATCHES_MAX: usize = 4;
/// Inputs in a batch during that time.
const OVERLOAD_INPUTS: usize = 32;
/// A claim that has to wait because the node runs its maximum of programs is tried again after this time.
const FULL_WAIT: Span = Span::from_millis(250);

/// Commands that are decided and committed together.
#[derive(Debug)]
pub(super) struct CommandBatch {
    /// The uptime before any of them was submitted. Leases are measured from it.
    pub(super) begin: Span,
    /// How often the node could start runs again before they were decided.
    pub(super) restarts: u32,
    pub(super) commands: Vec<StampedCommand>,
    /// The origin of each command, and how often it was decided.
    pub(super) origins: Vec<(CommandOrigin, usize)>,
}

/// How many inputs go into a batch beside the due items.
#[derive(Debug, Default)]
pub(super) struct InputShare {
    /// Batches in a row that were full of due items.
    full_batches: usize,
}

impl InputShare {
    /// The number of inputs in a batch with `due` items. The first batch of an overload still takes all inputs, so that
    /// what came before it is decided before it.
    fn next(&mut self, due: usize) -> usize {
        let is_reduced = due > 0 && !self.full_batches.is_multiple_of(OVERLOAD_BATCHES_MAX + 1);
        self.full_batches = if due >= DUE_MAX { self.full_batches + 1 } else { 0 };
        if is_reduced { OVERLOAD_INPUTS } else { BATCH_MAX - due }
    }
}

impl CommandBatch {
    /// Adds the commands of a batch that is committed together with this one.
    pub(super) fn append(&mut self, mut other: Self) {
        self.commands.append(&mut other.commands);
        self.origins.append(&mut other.origins);
    }
}

impl NodeLoop {
    /// Stamps commands with a time and this node.
    pub(super) fn stamp(&self, now: Instant, commands: Vec<PendingCommand>) -> CommandBatch {
        let begin = self.context.uptime();
        let (mut stamped, mut origins) = (Vec::with_capacity(commands.len()), Vec::with_capacity(commands.len()));
        for PendingCommand { actor, command, origin, attempt } in commands {
            stamped.push(StampedCommand { stamp: CommandStamp { at: now, actor, owner: self.context.me }, command });
            origins.push((origin, attempt));
        }
        CommandBatch { begin, restarts: self.restarts, commands: stamped, origins }
    }

    /// The commands of the next batch. Due items that are not commands go to `chores`.
    pub(super) fn next_commands(&mut self, now: Instant, chores: &mut Vec<PlanItem>) -> Vec<PendingCommand> {
        let uptime = self.context.uptime();
        if self.is_stopping || self.store_health.retry_in(uptime).is_some() {
            return Vec::new();
        }
        self.world.run_channels = self.context.options.run_subscriptions.get();
        let mut batch = self.commands.take(BATCH_MAX, uptime);
        // Due items get the larger share, because they should be on time. Inputs are decided first, because a run that
        // has ended must not block the next.
        let mut due = Vec::new();
        let may_claim = self.may_claim_at(uptime);
        if may_claim {
            let items = self.agenda.take_due(now, DUE_MAX, LATE_MAX);
            due = self.commands_for(items, now, uptime, chores);
        }
        let share = self.input_share.next(due.len());
        for input in self.context.handle.inputs.take(share) {
            match input {
                NodeInput::Request { deadline: Some(deadline), reply, .. } if deadline < uptime => {
                    reply.send(Err(RequestError::Late));
                }
                NodeInput::Request { actor, command, reply, .. } => {
                    batch.push(PendingCommand::new(actor, command, CommandOrigin::Request(reply)));
                }
                NodeInput::Report { run, report } => batch.push(PendingCommand::report(run, report)),
                NodeInput::Delivery { action, attempt, result } => {
                    let report = Command::ReportDelivery { action, attempt, result };
                    batch.push(PendingCommand::new(Actor::Action, report, CommandOrigin::Own));
                }
                NodeInput::Probe { run, attempt, result } => {
                    let report = Command::ReportProbe { run, attempt, result };
                    batch.push(PendingCommand::new(Actor::Queue, report, CommandOrigin::Own));
                }
                NodeInput::Start => self.agenda.request_start(),
                NodeInput::Calendars(calendars) => self.world.calendars = calendars,
                NodeInput::Keeper(problem) => self.record_keeper(problem, now),
                NodeInput::Stop => self.is_stopping = true,
            }
        }
        // Claims of the start are made once, so they wait for the keeper.
        if may_claim && self.world.keeper_problem.is_none() {
            let claims = self.agenda.take_start_claims(now).into_iter();
            batch.extend(claims.map(|claim| PendingCommand::new(Actor::Schedule, claim, CommandOrigin::Own)));
        }
        batch.extend(due);
        batch
    }

    /// Whether the node knows the time well enough, and has a heartbeat recent enough, to claim something.
    pub(super) fn may_claim_at(&mut self, uptime: Span) -> bool {
        self.clock.hold(uptime).is_none() && self.membership.is_fresh(uptime)
    }

    /// The claims of one instant in the future.
    pub(super) fn claims_at(&mut self, at: Instant, uptime: Span) -> Vec<PendingCommand> {
        let claims = self.agenda.take_claims(at, DUE_MAX);
        self.commands_for(claims, at, uptime, &mut Vec::new())
    }

    /// The commands for items of the plan. Items that have to wait are put back.
    fn commands_for(
        &mut self,
        items: Vec<DueItem>,
        now: Instant,
        uptime: Span,
        chores: &mut Vec<PlanItem>,
    ) -> Vec<PendingCommand> {
        let mut batch = Vec::with_capacity(items.len());
        for due in items {
            let deferred = self.claim_order().deferred_until(&due, now);
            if let Some(until) = deferred.or_else(|| self.full_until(&due.item, now, uptime)) {
                self.agenda.defer(due, until);
                continue;
            }
            let is_repair = self.agenda.take_repair(&due.item);
            let (actor, command) = match &due.item {
                PlanItem::Fire(job, schedule) => {
                    let (job, schedule) = (job.clone(), schedule.clone());
                    let nominal = due.nominal.expect("a claim is planned with its occurrence");
                    (Actor::Schedule, Command::Fire { job, schedule, nominal, at_start: false })
                }
                PlanItem::CatchUp(job, schedule) => {
                    (Actor::CatchUp, Command::CatchUp { job: job.clone(), schedule: schedule.clone() })
                }
                PlanItem::EndPause(job) => (Actor::Limit, Command::EndPause { job: job.clone() }),
                PlanItem::Wake(run) => (Actor::Queue, Command::Wake { run: *run }),
                PlanItem::Batch(job) => (Actor::Queue, Command::Batch { job: job.clone() }),
                PlanItem::Deliver(action) => (Actor::Action, Command::Deliver { action: *action }),
                PlanItem::Watchdog
                | PlanItem::Reap
                | PlanItem::ReloadChanges
                | PlanItem::CheckJobs(_)
                | PlanItem::CheckPools(_)
                | PlanItem::Prune(_)
                | PlanItem::Expire(_)
                | PlanItem::TrimOutputs(_) => {
                    chores.push(due.item);
                    continue;
                }
            };
            // The run that an action or a trigger creates has that as its actor in any case.
            let is_repair = is_repair && !matches!(command, Command::Deliver { .. } | Command::Batch { .. });
            let actor = if is_repair { Actor::Watchdog } else { actor };
            batch.push(PendingCommand::new(actor, command, CommandOrigin::Planned(due)));
        }
        batch
    }

    /// Until when an item has to wait because the node is at one of its limits.
    fn full_until(&mut self, item: &PlanItem, now: Instant, uptime: Span) -> Option<Instant> {
        let options = &self.context.options;
        match item {
            PlanItem::Fire(..) | PlanItem::CatchUp(..) | PlanItem::Batch(_)
                if self.programs.len() >= options.programs_max =>
            {
                Some(now.plus(FULL_WAIT))
            }
            PlanItem::CatchUp(..) => {
                let taken = self.agenda.take_catch_up(uptime, options.catch_up_rate);
                taken.err().map(|next_second| now.plus(next_second))
            }
            _ => None,
        }
    }

    /// Decides commands as of a time. If the store cannot be read, all of them are put back.
    pub(super) async fn prepare(
        &mut self,
        now: Instant,
        commands: Vec<PendingCommand>,
    ) -> Option<(PreparedTurn, CommandBatch)> {
        let batch = self.stamp(now, commands);
        let commands: Vec<&StampedCommand> = batch.commands.iter().collect();
        match self.session.prepare(&self.world, &commands).await {
            Ok(prepared) => Some((prepared, batch)),
            Err(fault) => {
                let failed = commands.iter().map(|_| Some(CommandOutcome::Failed(fault.clone()))).collect();
                self.apply_outcomes(failed, batch).await;
                None
            }
        }
    }
}

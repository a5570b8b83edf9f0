//! Performs the effects of commits and of stored records: changes the plan, starts and stops programs, and wakes runs
//! that wait for a changed record.

use std::sync::Arc;

use cronhold_core::command::{Command, CommandStamp, ProgramReport};
use cronhold_core::decide::LAUNCH_WITHIN;
use cronhold_core::decision::{DecidedUnit, Effect, RecordChange};
use cronhold_core::owed::{owed, owed_by};
use cronhold_core::record::{Actor, Blocker, LockName, Record, RecordKey, Run};
use cronhold_core::{RunId, State, When};
use cronhold_schedule::{Instant, Span};

use super::NodeLoop;
use crate::counters::Counters;
use crate::local_deliveries::LocalDeliveries;
use crate::plan::PlanItem;
use crate::ports::{EngineEvent, LaunchRequest, ProbeRequest};
use crate::store_clock::ERROR_MAX;

/// The old runs of a job are checked this long after they have exceeded what the job retains.
const PRUNE_AFTER: Span = Span::from_secs(1);
/// How long a program of an earlier process may take to be found before the limits of its run are checked.
const ADOPT_WAIT: Span = Span::from_secs(5);

/// The commit that caused effects.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommitReceipt<'a> {
    /// The uptime before which the commit was not sent.
    pub(super) sent: Span,
    /// The fences of the locks that it took.
    pub(super) fences: &'a [(LockName, u64)],
}

impl NodeLoop {
    /// Follows a commit of this node, and performs what it owes.
    pub(super) async fn apply_commit(&mut self, stamp: &CommandStamp, done: DecidedUnit, commit: CommitReceipt<'_>) {
        if !done.changes.is_empty() {
            self.context.emit(&EngineEvent::Committed { stamp, done: &done });
        }
        let mut effects = Vec::new();
        for change in &done.changes {
            if let RecordChange::Put(Record::Action(action)) = change {
                LocalDeliveries::count(action, &self.context.counters().actions);
            }
            self.record_change(change, stamp.at);
            effects.extend(owed_by(change, self.context.me));
        }
        effects.extend(done.effects);
        self.membership.heartbeater().record_locks(&done.take, &done.free, &done.changes);
        self.perform_all(effects, Some(commit), stamp.at).await;
        let freed = done.free.into_iter().map(|free| RecordKey::Lock(free.lock));
        for record in done.changes.iter().map(RecordChange::key).chain(freed) {
            self.agenda.wake_waiting(&record);
        }
        self.plan_woken(stamp.at);
    }

    /// Follows a stored record, and performs what it owes.
    pub(super) async fn apply_stored(&mut self, record: &Record, now: Instant) {
        self.record_change(&RecordChange::Put(record.clone()), now);
        let effects = owed(record, self.context.me);
        self.perform_all(effects, None, now).await;
        self.plan_woken(now);
    }

    /// Follows a record that another node has changed, and performs what it owes. What any node could do is left to that
    /// node for a moment.
    pub(super) async fn apply_foreign_change(&mut self, change: &RecordChange, now: Instant) {
        if let RecordChange::Put(Record::Run(run)) = change
            && run.state.is_finished()
            && self.programs.contains(run.id)
            && run.terms.lease.is_some()
        {
            // Another node has declared the run lost while its program is here. A program with a lease must not go on.
            self.context.ports.programs.stop(run);
        }
        if let RecordChange::Put(Record::Run(run)) = change
            && run.state.has_program()
            && run.owner.is_some_and(|owner| owner.node != self.context.me.node)
            && self.programs.remove(run.id)
        {
            // Another node has taken it over while this one was gone.
            self.context.ports.programs.release(run.id);
        }
        self.record_change(change, now);
        // The other node could not start it; this one may be able to.
        let waits_for_node =
            matches!(change, RecordChange::Put(Record::Run(run)) if run.blockers.contains(&Blocker::Node));
        for effect in owed_by(change, self.context.me) {
            match effect {
                Effect::Wake { run, at } if (at.is_due(now) || waits_for_node) && !self.programs.contains(run) => {
                    self.wake_after_change(run, now);
                }
                Effect::PlanBatch { job, at } if at.is_due(now) => {
                    let at = self.claim_order().batch_after_change(&job, now);
                    self.agenda.put_by(PlanItem::Batch(job), at);
                }
                // The notification may be late, and the run may have been woken since.
                Effect::Wake { run, at: When::At(_) } if self.agenda.is_due(&PlanItem::Wake(run), now) => {}
                effect => self.perform(effect, None, now).await,
            }
        }
        // The other node wakes the same runs.
        for run in self.agenda.take_woken() {
            self.wake_after_change(run, now);
        }
    }

    /// Plans the checks of the runs that a change of this node may have made possible.
    pub(super) fn plan_woken(&mut self, now: Instant) {
        for run in self.agenda.take_woken() {
            let at = self.claim_order().wake_after_own_change(run, now);
            self.agenda.put(PlanItem::Wake(run), at);
        }
    }

    /// Plans the check of a run that another node has changed or made possible. That node acts first.
    pub(super) fn wake_after_change(&mut self, run: RunId, now: Instant) {
        let at = self.claim_order().wake_after_change(run, now);
        self.agenda.put_by(PlanItem::Wake(run), at);
    }

    /// Keeps what the node knows beside the store up to date with a change.
    fn record_change(&mut self, change: &RecordChange, now: Instant) {
        self.agenda.record_change(change, now);
        self.deliveries.record_change(change, self.context.me, self.context.counters());
        self.probes.record_change(change, self.context.me);
        match change {
            RecordChange::Put(Record::Run(run)) if run.state.is_finished() && self.programs.remove(run.id) => {
                Counters::add(&self.context.counters().finished, 1);
            }
            RecordChange::Put(Record::Node(node)) if node.id == self.context.me.node => {
                self.membership.record_drain(self.context.uptime());
                self.record_draining(node.draining, now);
            }
            _ => {}
        }
    }

    /// Follows whether this node drains.
    pub(super) fn record_draining(&mut self, draining: bool, now: Instant) {
        if std::mem::replace(&mut self.world.is_draining, draining) != draining {
            self.membership.heartbeater().set_draining(draining);
            self.context.emit(&EngineEvent::Draining(draining));
            if !draining {
                self.start_again(now);
            }
        }
    }

    /// Follows whether the keeper of this node can start programs.
    pub(super) fn record_keeper(&mut self, problem: Option<Arc<str>>, now: Instant) {
        if self.world.keeper_problem == problem {
            return;
        }
        self.membership.heartbeater().set_keeper_problem(problem.as_deref());
        // At the start a node waits for its keeper, which is not worth a report.
        if std::mem::replace(&mut self.has_keeper_failed, problem.is_some()) || problem.is_some() {
            self.context.emit(&EngineEvent::Keeper { problem: problem.as_deref() });
        }
        self.world.keeper_problem = problem;
        if self.world.keeper_problem.is_none() {
            self.start_again(now);
        }
    }

    /// The node may start runs again. What was due meanwhile, and runs that wait for an eligible node, may have waited for
    /// this one.
    fn start_again(&mut self, now: Instant) {
        self.restarts = self.restarts.wrapping_add(1);
        self.plan_postponed(now);
    }

    /// Plans what was put off because the node could not start runs.
    pub(super) fn plan_postponed(&mut self, now: Instant) {
        self.agenda.wake_all(now);
        self.agenda.claim_overdue(now);
    }

    async fn perform_all(&mut self, effects: Vec<Effect>, commit: Option<CommitReceipt<'_>>, now: Instant) {
        // A wake that is due now goes last, so that a later time for the same run does not replace it.
        let (immediate, other): (Vec<Effect>, Vec<Effect>) =
            effects.into_iter().partition(|effect| matches!(effect, Effect::Wake { at: When::Now, .. }));
        for effect in other.into_iter().chain(immediate) {
            self.perform(effect, commit, now).await;
        }
    }

    async fn perform(&mut self, effect: Effect, commit: Option<CommitReceipt<'_>>, now: Instant) {
        match effect {
            Effect::Plan { job, schedule, next } => self.agenda.put_next(job, schedule, next),
            Effect::Rest { job, schedule, nominal } => self.agenda.pause(job, schedule, nominal),
            Effect::EndPause { job, at } => self.agenda.put(PlanItem::EndPause(job), at),
            Effect::CatchUp { job, schedule, at } => self.agenda.put(PlanItem::CatchUp(job, schedule), at),
            Effect::Wake { run, at } => self.agenda.put(PlanItem::Wake(run), at),
            Effect::PlanBatch { job, at } => self.agenda.put(PlanItem::Batch(job), at),
            Effect::PlanDelivery { action, at } => self.agenda.put(PlanItem::Deliver(action), at),
            Effect::Deliver { action } => {
                if self.deliveries.begin(&action) {
                    self.context.ports.programs.deliver(action);
                }
            }
            Effect::Probe { run, attempt } => {
                let probe = run.probes.iter().find(|probe| probe.attempt == attempt).map(|probe| probe.probe.clone());
                if let Some(probe) = probe.filter(|_| self.probes.begin(run.id, attempt)) {
                    self.context.ports.programs.probe(ProbeRequest { run, attempt, probe });
                }
            }
            Effect::Launch { run } => self.launch(run, commit, now).await,
            Effect::Adopt { run } => {
                self.programs.adopt(&run);
                // The program may have ended before a limit that has passed since, so its report is waited for.
                if let Some(due) = run.next_check() {
                    self.agenda.put(PlanItem::Wake(run.id), due.max(now.plus(ADOPT_WAIT)));
                }
                self.context.ports.programs.adopt(run);
            }
            Effect::Stop { run } => self.context.ports.programs.stop(&run),
            Effect::Signal { run, signal } => self.context.ports.programs.signal(run, signal),
            Effect::Prune { job } => self.agenda.put_by(PlanItem::Prune(job), now.plus(PRUNE_AFTER)),
        }
    }

    /// Starts the program of a run, unless that was requested before.
    async fn launch(&mut self, run: Arc<Run>, commit: Option<CommitReceipt<'_>>, now: Instant) {
        if self.programs.contains(run.id) {
            return;
        }
        let uptime = self.context.uptime();
        let sent = commit.map_or_else(|| self.sent_without_receipt(&run, uptime, now), |commit| commit.sent);
        let kill_at = self.programs.launch(&run, sent);
        // If the node was delayed for long, another node may have declared the run lost, so it must not start any more.
        let has_expired = kill_at.is_some_and(|kill_at| kill_at <= uptime);
        let launch_by = sent.plus(LAUNCH_WITHIN);
        if has_expired || launch_by < uptime {
            let report = ProgramReport::NotLaunched("the node was delayed for too long".to_owned());
            self.commands.push_own(Actor::Program, Command::Report { run: run.id, report });
            return;
        }
        let fence = match &run.lock {
            None => None,
            Some(lock) => {
                let fence = self.fence(lock, run.id, commit).await;
                if fence.is_none() {
                    // It is unknown whether the run still has its lock, so it is not started. Its due time ends it.
                    self.programs.remove(run.id);
                    return;
                }
                fence
            }
        };
        Counters::add(&self.context.counters().launched, 1);
        self.context.ports.programs.launch(LaunchRequest { run, fence, launch_by, kill_at });
    }

    /// The uptime before which the commit of a starting run was not sent, if the node got no reply to it.
    fn sent_without_receipt(&self, run: &Run, uptime: Span, now: Instant) -> Span {
        let Some(decided) = run.entered(State::Starting) else { return uptime };
        match self.unconfirmed.sent(decided) {
            Some(sent) => sent,
            // It may have been sent any time ago, so the run is not started.
            None if self.clock.was_set_back() => Span::ZERO,
            // The commit was sent after the run was decided. The time in its log has the error of the store's time.
            None => uptime.minus(now.since(decided).plus(ERROR_MAX)),
        }
    }

    /// The fence of a lock that a run holds. If it is not known from the commit, it is read from the store.
    async fn fence(&self, lock: &LockName, run: RunId, commit: Option<CommitReceipt<'_>>) -> Option<u64> {
        let known = commit.and_then(|commit| commit.fences.iter().find(|(name, _)| name == lock));
        if let Some((_, fence)) = known {
            return Some(*fence);
        }
        let found = self.context.ports.store.load(&[RecordKey::Lock(lock.clone())]).await.ok()?;
        match found.into_iter().flatten().next()?.record {
            Record::Lock(held) if held.holder == run => Some(held.fence),
            _ => None,
        }
    }
}

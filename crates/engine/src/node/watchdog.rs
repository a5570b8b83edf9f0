//! The watchdog: once in a period it reads everything that is overdue from the store, and compares it with the plan
//! of the node. It plans what is missing, and the records name the watchdog as the actor.

use std::sync::Arc;

use cronhold_core::command::{Command, ProgramReport};
use cronhold_core::record::{Actor, Record, RecordKey, Run};
use cronhold_core::{JobId, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Hint, Obligation, Query};

use super::NodeLoop;
use crate::counters::Counters;
use crate::plan::PlanItem;
use crate::ports::EngineEvent;
use crate::watchdog_progress::PassStep;

/// Obligations or runs on one page.
const PAGE: usize = 1_000;
/// Items that are later than this are repaired. Less late ones may still be in progress.
const LATE: Span = Span::from_secs(5);
/// A planned item that waits for a reason is checked again within this time.
const CHECKED_WITHIN: Span = Span::from_secs(60);

impl NodeLoop {
    /// The time between two passes. With the time after which something counts as late, and the time for which a node
    /// leaves a repair to others, it makes a minute.
    pub(super) const WATCHDOG_EVERY: Span = Span::from_secs(45);

    /// Makes one step of a pass, and plans the next one. A pass over little work is one step.
    pub(super) async fn run_watchdog(&mut self, now: Instant) -> Result<(), Fault> {
        let is_urgent =
            self.clock.has_stepped_back() || self.hints.has_overflowed() || self.store_health.has_unknown_outcome();
        if self.watchdog.step == PassStep::Node || is_urgent {
            if self.watchdog.step == PassStep::Node {
                self.agenda.clear_repairs();
            }
            self.watchdog.pass.record(0, self.context.uptime());
            self.check_node(now).await?;
            match self.watchdog.step {
                PassStep::Node => self.watchdog.step = PassStep::Obligations(None),
                // The pass goes on, so that it ends however often it is requested again.
                _ => self.watchdog.is_repeated = true,
            }
        }
        if let PassStep::Obligations(after) = self.watchdog.step.clone() {
            let next = self.check_obligations(after, now).await?;
            self.watchdog.step = next.map_or(PassStep::Pauses(None), |next| PassStep::Obligations(Some(next)));
        }
        if let PassStep::Pauses(after) = self.watchdog.step.clone() {
            let next = self.check_pauses(after, now).await?;
            self.watchdog.step = next.map_or(PassStep::Node, |next| PassStep::Pauses(Some(next)));
        }
        self.report_delay();
        let again = match self.watchdog.step {
            PassStep::Node => {
                let took = self.watchdog.pass.end(self.context.uptime());
                let is_repeated = std::mem::take(&mut self.watchdog.is_repeated);
                if is_repeated { Span::ZERO } else { Self::WATCHDOG_EVERY.minus(took) }
            }
            _ => Span::ZERO,
        };
        self.agenda.put(PlanItem::Watchdog, now.plus(again));
        Ok(())
    }

    /// Reports a walk that takes longer than the period of the watchdog. A walk over all jobs may, unless it is urgent.
    pub(super) fn report_delay(&mut self) {
        let uptime = self.context.uptime();
        let jobs = Some(&mut self.watchdog.jobs).filter(|_| self.watchdog.is_urgent);
        for walk in [&mut self.watchdog.pass].into_iter().chain(jobs) {
            if let Some((took, checked)) = walk.take_delay(Self::WATCHDOG_EVERY, uptime) {
                self.context.emit(&EngineEvent::WatchdogDelayed { took, checked });
            }
        }
    }

    /// Checks what this node knows about itself: its clock, its notifications, its commits and its programs.
    async fn check_node(&mut self, now: Instant) -> Result<(), Fault> {
        if self.clock.has_stepped_back() {
            // Their times were computed before the clock was set back, so all of them would be late.
            self.recover_cursors(now).await?;
            self.recover_runs(now, |run| run.state == State::Waiting).await?;
            self.clock.clear_step_back();
        }
        if self.hints.has_overflowed() {
            self.watchdog.is_urgent = true;
            self.recover_all(now).await?;
            self.hints.clear_overflow();
        }
        if self.store_health.has_unknown_outcome() {
            // The commit whose outcome is unknown may have ended a pause, or let a run wait or go on.
            self.agenda.resume(None, now);
            self.recover_runs(now, |run| run.state == State::Waiting).await?;
            // It may also have started or ended the drain of this node.
            for (_, own) in self.load_readable(vec![RecordKey::Node(self.context.me.node)]).await? {
                if let Some(own) = own {
                    self.apply_stored(&own.record, now).await;
                }
            }
        }
        self.check_programs(now).await?;
        self.store_health.resolve_unknown_outcome();
        Ok(())
    }

    /// Compares the runs that this node owns in the store with the programs that it knows.
    async fn check_programs(&mut self, now: Instant) -> Result<(), Fault> {
        let mut finished = self.programs.runs().clone();
        let mut after = None;
        loop {
            let query = Query::Unfinished { node: Some(self.context.me.node), after };
            let page = self.context.ports.store.page(&query, PAGE).await?;
            for record in &page.unreadable {
                self.context.report_unreadable(record);
                // It is not known whether it has ended.
                record.key.as_ref().and_then(RecordKey::run_list_id).map(|run| finished.remove(&run));
            }
            for stored in &page.records {
                let Record::Run(run) = &stored.record else { continue };
                if finished.remove(&run.id) {
                    self.check_known_program(run, now).await;
                } else {
                    self.repair_unknown_run(run, now).await;
                }
            }
            after = match page.next(PAGE) {
                Some(RecordKey::Run(run)) => Some(run),
                _ => break,
            };
        }
        // Another node has ended these runs, and the notification was lost.
        if self.world.is_shared && !finished.is_empty() {
            self.record_hints(finished.into_iter().map(|run| Hint::new(RecordKey::Run(run))).collect());
        }
        Ok(())
    }

    /// Requests the program of a run again if the run has not changed for long: a report may have been lost.
    async fn check_known_program(&mut self, run: &Arc<Run>, now: Instant) {
        if self.world.is_shared {
            // Another node may have requested a stop, and the notification was lost.
            self.apply_stored(&Record::Run(Arc::clone(run)), now).await;
        } else if !self.agenda.has(&PlanItem::Wake(run.id)) {
            // The store need not list these runs among the obligations.
            self.agenda.put(PlanItem::Wake(run.id), run.next_check());
        }
        if run.log.last().is_none_or(|entry| now.since(entry.at) > CHECKED_WITHIN) {
            self.context.ports.programs.adopt(Arc::clone(run));
        }
    }

    /// Repairs a run that this node owns and does not know, because the answer to its commit was lost.
    async fn repair_unknown_run(&mut self, run: &Arc<Run>, now: Instant) {
        let key = RecordKey::Run(run.id);
        self.report_repair(&key, run.due.map_or(Span::ZERO, |due| now.since(due)));
        self.session.evict(&key);
        let is_late = run.due.is_some_and(|due| due < now);
        // It was never launched, and now it is too late for that.
        if run.state == State::Starting && run.owner == Some(self.context.me) && is_late {
            self.commands.push_own(Actor::Watchdog, Command::Report { run: run.id, report: ProgramReport::Lost });
        } else {
            self.apply_stored(&Record::Run(Arc::clone(run)), now).await;
        }
    }

    /// Plans what is overdue in the store and not in the plan, one page after an obligation. Returns the last one of a
    /// full page.
    async fn check_obligations(
        &mut self,
        after: Option<Obligation>,
        now: Instant,
    ) -> Result<Option<Obligation>, Fault> {
        let page = self.context.ports.store.due(after.as_ref(), now.minus(LATE), PAGE).await?;
        self.watchdog.pass.record(page.len(), self.context.uptime());
        page.iter().for_each(|obligation| self.repair(obligation, now));
        Ok(if page.len() < PAGE { None } else { page.into_iter().last() })
    }

    /// Plans an obligation, unless it is in the plan or paused.
    fn repair(&mut self, obligation: &Obligation, now: Instant) {
        let item = match &obligation.key {
            RecordKey::Cursor(job, schedule) if self.agenda.is_paused(job, schedule) => return,
            RecordKey::Cursor(job, schedule) => PlanItem::Fire(job.clone(), schedule.clone()),
            RecordKey::Backlog(job, schedule) => PlanItem::CatchUp(job.clone(), schedule.clone()),
            RecordKey::Run(run) => PlanItem::Wake(*run),
            RecordKey::Action(action) => PlanItem::Deliver(*action),
            RecordKey::Triggers(job) => PlanItem::Batch(job.clone()),
            _ => return,
        };
        if self.is_planned(&item, obligation.at, now) {
            return;
        }
        // The watchdogs of other nodes find it too, and one repair is enough.
        if now.since(obligation.at) < LATE.plus(self.claim_order().repair_delay(&item, obligation.at)) {
            return;
        }
        self.session.evict(&obligation.key);
        self.report_repair(&obligation.key, now.since(obligation.at));
        self.agenda.put_missed(item, now, obligation.at);
    }

    /// Checks whether jobs are still paused, one page after a job, because on a shared store the notification of a
    /// resume may have been lost. Returns the last one of a full page.
    async fn check_pauses(&mut self, after: Option<JobId>, now: Instant) -> Result<Option<JobId>, Fault> {
        let jobs = self.agenda.paused_jobs(after.as_ref(), PAGE);
        if jobs.is_empty() || !self.context.ports.store.is_shared() {
            return Ok(None);
        }
        let mut keys = vec![RecordKey::Pause];
        keys.extend(jobs.iter().cloned().map(RecordKey::JobState));
        let mut found = self.load_readable(keys).await?.into_iter();
        self.watchdog.pass.record(jobs.len(), self.context.uptime());
        let everything = found.next().and_then(|(_, stored)| stored).map(|stored| stored.record);
        if matches!(everything, Some(Record::Pause(pauses)) if pauses.is_paused_at(now)) {
            return Ok(None);
        }
        for (key, stored) in found {
            let RecordKey::JobState(job) = &key else { continue };
            let is_paused = matches!(stored.map(|stored| stored.record),
                Some(Record::JobState(state)) if state.pauses.is_paused_at(now));
            if !is_paused {
                self.session.evict(&key);
                self.session.evict(&RecordKey::Pause);
                self.agenda.resume(Some(job), now);
            }
        }
        Ok(if jobs.len() < PAGE { None } else { jobs.into_iter().last() })
    }

    /// Whether an overdue item is in the plan: it is late because the node is busy, or waits for a reason that is checked
    /// again within a minute. An item that is planned for later was changed by another node, and the notification was
    /// lost.
    fn is_planned(&self, item: &PlanItem, at: Instant, now: Instant) -> bool {
        let Some((due, nominal)) = self.agenda.due(item) else { return false };
        let is_later_occurrence = matches!(item, PlanItem::Fire(..)) && nominal.is_some_and(|nominal| nominal > at);
        !is_later_occurrence && due.is_due(now.plus(CHECKED_WITHIN))
    }

    pub(super) fn report_repair(&self, key: &RecordKey, late: Span) {
        Counters::add(&self.context.counters().repaired, 1);
        self.context.emit(&EngineEvent::Repaired { key, late });
    }
}

//! The watchdog: once a minute it reads everything that is overdue from the store, and compares it with the plan of the
//! node. It plans what is missing, and the records name the watchdog as the actor.

use std::sync::Arc;

use cronhold_core::State;
use cronhold_core::command::{Command, ProgramReport};
use cronhold_core::record::{Actor, Record, RecordKey, Run};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Hint, Obligation, Query};

use super::NodeLoop;
use crate::counters::Counters;
use crate::plan::PlanItem;
use crate::ports::EngineEvent;

/// Obligations or runs on one page.
const PAGE: usize = 1_000;
/// Items that are later than this are repaired. Less late ones may still be in progress.
const LATE: Span = Span::from_secs(5);
/// Repairs in one pass. The next pass makes the others.
const REPAIRS_MAX: usize = 5_000;

impl NodeLoop {
    /// The time between two passes.
    pub(super) const WATCHDOG_EVERY: Span = Span::from_secs(60);

    /// Makes one pass.
    pub(super) async fn run_watchdog(&mut self, now: Instant) -> Result<(), Fault> {
        self.agenda.clear_repairs();
        if self.clock.has_stepped_back() {
            self.recover_cursors(now).await?;
            self.clock.clear_step_back();
        }
        if self.hints.has_overflowed() {
            self.recover_all(now).await?;
            self.hints.clear_overflow();
        }
        if self.store_health.has_unknown_outcome() {
            // The commit whose outcome is unknown may have ended a pause.
            self.agenda.resume(None, now);
        }
        self.check_programs(now).await?;
        self.store_health.resolve_unknown_outcome();
        self.check_obligations(now).await
    }

    /// Compares the runs that this node owns in the store with the programs that it knows.
    async fn check_programs(&mut self, now: Instant) -> Result<(), Fault> {
        let mut finished = self.programs.runs().clone();
        let mut after = None;
        loop {
            let query = Query::Unfinished { node: Some(self.context.me.node), after };
            let page = self.context.ports.store.page(&query, PAGE).await?;
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
        }
        if run.log.last().is_none_or(|entry| now.since(entry.at) > Self::WATCHDOG_EVERY) {
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

    /// Plans everything that is overdue in the store and not in the plan.
    async fn check_obligations(&mut self, now: Instant) -> Result<(), Fault> {
        let mut after: Option<Obligation> = None;
        let mut repairs = 0;
        loop {
            let page = self.context.ports.store.due(after.as_ref(), now.minus(LATE), PAGE).await?;
            for obligation in &page {
                if repairs < REPAIRS_MAX && self.repair(obligation, now) {
                    repairs += 1;
                }
            }
            if page.len() < PAGE || repairs >= REPAIRS_MAX {
                return Ok(());
            }
            after = page.into_iter().last();
        }
    }

    /// Plans an obligation, unless it is in the plan or paused. Returns whether it did. On a shared store the
    /// notification of a resume may have been lost, so paused occurrences are claimed too, but not counted as repairs.
    fn repair(&mut self, obligation: &Obligation, now: Instant) -> bool {
        let mut is_paused = false;
        let item = match &obligation.key {
            RecordKey::Cursor(job, schedule) => {
                is_paused = self.agenda.is_paused(job, schedule);
                if is_paused && !self.context.ports.store.is_shared() {
                    return false;
                }
                PlanItem::Fire(job.clone(), schedule.clone())
            }
            RecordKey::Backlog(job, schedule) => PlanItem::CatchUp(job.clone(), schedule.clone()),
            RecordKey::Run(run) => PlanItem::Wake(*run),
            _ => return false,
        };
        if self.is_planned(&item, obligation.at, now) {
            return false;
        }
        // The watchdogs of other nodes find it too, and one repair is enough.
        if now.since(obligation.at) < LATE.plus(self.claim_order().repair_delay(&item, obligation.at)) {
            return false;
        }
        self.session.evict(&obligation.key);
        if !is_paused {
            self.report_repair(&obligation.key, now.since(obligation.at));
        }
        self.agenda.put_missed(item, now, obligation.at, !is_paused);
        true
    }

    /// Whether an overdue item is in the plan: it is late because the node is busy, or waits for a reason that is checked
    /// again within a minute. An item that is planned for later was changed by another node, and the notification was
    /// lost.
    fn is_planned(&self, item: &PlanItem, at: Instant, now: Instant) -> bool {
        let Some((due, nominal)) = self.agenda.due(item) else { return false };
        let is_later_occurrence = matches!(item, PlanItem::Fire(..)) && nominal.is_some_and(|nominal| nominal > at);
        !is_later_occurrence && due.is_due(now.plus(Self::WATCHDOG_EVERY))
    }

    fn report_repair(&self, key: &RecordKey, late: Span) {
        Counters::add(&self.context.counters().repaired, 1);
        self.context.emit(&EngineEvent::Repaired { key, late });
    }
}

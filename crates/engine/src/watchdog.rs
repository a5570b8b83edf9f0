//! The watchdog: once a minute it asks the store for everything whose time has passed and compares that with what the
//! node knows. What nobody was going to do is done, and its record says that the watchdog did it.

use std::sync::Arc;

use cronhold_core::State;
use cronhold_core::command::{Command, Report};
use cronhold_core::record::{Actor, Key, Record};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Hint, Obligation, Query};

use crate::meter::Meter;
use crate::node::Node;
use crate::plan::Item;
use crate::ports::News;

/// Obligations and runs that are looked at in one page.
const PAGE: usize = 1_000;
/// What is later than this is repaired; what is less late is still on its way.
const LATE: Span = Span::from_secs(5);
/// Repairs in one pass; the others come with the next.
const REPAIRS_MAX: usize = 5_000;

impl Node {
    /// Time between two passes.
    pub(crate) const WATCH_EVERY: Span = Span::from_secs(60);

    /// One pass.
    pub(crate) async fn watch(&mut self, now: Instant) -> Result<(), Fault> {
        self.found.clear();
        if self.went_back {
            self.rewind(now).await?;
            self.went_back = false;
        }
        if self.has_lost_touch {
            self.catch_touch(now).await?;
            self.has_lost_touch = false;
        }
        if self.is_unsure {
            // What nobody heard the answer of may have been the end of a pause.
            self.wake_resting(None, now);
        }
        self.watch_programs(now).await?;
        self.is_unsure = false;
        self.watch_obligations(now).await
    }

    /// Runs that this node owns and does not know of: their commit was made and nobody heard the answer. Those that it
    /// knows are asked after when they are old, because a report may have been lost; and those that are over in the store
    /// were ended by somebody else.
    async fn watch_programs(&mut self, now: Instant) -> Result<(), Fault> {
        let mut over = self.programs.clone();
        let mut after = None;
        loop {
            let query = Query::Unfinished { node: Some(self.me.node), after };
            let page = self.ports.store.page(&query, PAGE).await?;
            for stored in &page.records {
                let Record::Run(run) = &stored.record else { continue };
                if over.remove(&run.id) {
                    if self.world.is_shared {
                        // Somebody else may have told it to end, and nobody heard that.
                        self.take_up(&stored.record, now).await;
                    }
                    if run.log.last().is_none_or(|entry| now.since(entry.at) > Self::WATCH_EVERY) {
                        self.ports.outside.adopt(Arc::clone(run));
                    }
                    continue;
                }
                self.repaired(&stored.record.key(), run.due.map_or(Span::ZERO, |due| now.since(due)));
                self.desk.forget(&stored.record.key());
                let is_late = run.due.is_some_and(|due| due < now);
                // Too late to start it: it was never started, so it is lost.
                if run.state == State::Starting && run.owner == Some(self.me) && is_late {
                    let report = Report::Lost;
                    self.own.push_back((Actor::Watchdog, Command::Report { run: run.id, report }));
                } else {
                    self.take_up(&stored.record, now).await;
                }
            }
            after = match page.next(PAGE) {
                Some(Key::Run(run)) => Some(run),
                _ => break,
            };
        }
        if self.world.is_shared && !over.is_empty() {
            self.note_hints(over.into_iter().map(|run| Hint::new(Key::Run(run))).collect());
        }
        Ok(())
    }

    /// Everything whose time has passed and that is not in the plan.
    async fn watch_obligations(&mut self, now: Instant) -> Result<(), Fault> {
        let mut after: Option<Obligation> = None;
        let mut repairs = 0;
        loop {
            let page = self.ports.store.due(after.as_ref(), now.minus(LATE), PAGE).await?;
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

    /// Puts an obligation into the plan, if it is not there and not at rest. On a store that others share the end of a
    /// pause may not have been heard, so that what rests is looked at, too; but nothing is wrong with it.
    fn repair(&mut self, obligation: &Obligation, now: Instant) -> bool {
        let mut is_resting = false;
        let item = match &obligation.key {
            Key::Cursor(job, schedule) => {
                is_resting = self.resting.has_schedule(job, schedule);
                if is_resting && !self.ports.store.is_shared() {
                    return false;
                }
                Item::Fire(job.clone(), schedule.clone())
            }
            Key::Backlog(job, schedule) => Item::CatchUp(job.clone(), schedule.clone()),
            Key::Run(run) => Item::Wake(*run),
            _ => return false,
        };
        if self.is_planned(&item, obligation.at, now) {
            return false;
        }
        // Others look as well, and one of them is enough.
        if now.since(obligation.at) < LATE.plus(self.unhurried(&item, obligation.at)) {
            return false;
        }
        self.desk.forget(&obligation.key);
        if !is_resting {
            self.repaired(&obligation.key, now.since(obligation.at));
            self.found.insert(item.clone());
        }
        self.plan.put_for(item, now, obligation.at);
        true
    }

    /// Whether something is in the plan that should have been done: it is late because there is much to do, or waits for
    /// a reason, which is looked at again within a minute. What is there for a later time was due then, before somebody
    /// else changed it and was not heard.
    fn is_planned(&self, item: &Item, at: Instant, now: Instant) -> bool {
        let Some((due, nominal)) = self.plan.due(item) else { return false };
        let is_later_occurrence = matches!(item, Item::Fire(..)) && nominal > at;
        !is_later_occurrence && due <= now.plus(Self::WATCH_EVERY)
    }

    fn repaired(&self, key: &Key, late: Span) {
        Meter::add(&self.handle.meter.repaired, 1);
        self.ports.feed.tell(&News::Repaired { key, late });
    }
}

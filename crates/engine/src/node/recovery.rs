//! Recovers the state of a node from the store. A node that starts performs what every stored record owes, by the same
//! rule as after a commit, so that nothing depends on the memory of an earlier process.

use cronhold_core::command::Command;
use cronhold_core::record::{Actor, Record, RecordKey, Run};
use cronhold_core::{State, When};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Page, Query};

use super::NodeLoop;
use crate::plan::PlanItem;
use crate::ports::EngineEvent;

/// Records on one page.
const PAGE: usize = 2_000;
/// A cursor that is further ahead than this was moved by a wrong clock.
const AHEAD_MAX: Span = Span::from_secs(60);
/// Cursors that were computed with older time zone data are computed again at once if they are due within this time. The
/// walk over all jobs comes to the others before.
const SOON: Span = Span::from_secs(120);

impl NodeLoop {
    /// Recovers everything that is stored.
    pub(super) async fn recover(&mut self) -> Result<(), Fault> {
        let before = self.context.uptime();
        let now = self.read_clock();
        let unfinished = self.recover_all(now).await?;
        let took = self.context.uptime().minus(before);
        self.context.emit(&EngineEvent::Ready { planned: self.agenda.len(), unfinished, took });
        Ok(())
    }

    /// Reads and applies the pause of all jobs, all cursors, backlogs, pending actions, triggers and unfinished runs. Returns the
    /// number of unfinished runs. The pause of a job is met by what it keeps from starting, and by the walk over all jobs.
    pub(super) async fn recover_all(&mut self, now: Instant) -> Result<usize, Fault> {
        let pause = self.load_readable(vec![RecordKey::Pause]).await?.into_iter().find_map(|(_, stored)| stored);
        if let Some(pause) = pause {
            self.apply_stored(&pause.record, now).await;
        }
        self.recover_cursors(now).await?;
        self.recover_backlogs(now).await?;
        self.recover_actions(now).await?;
        self.recover_triggers(now).await?;
        self.recover_runs(now, |_| true).await
    }

    /// Reads and applies all cursors. Those that a wrong clock has moved too far, or that were computed with older time
    /// zone data and are due soon, are computed again at once. Others with older data are computed again by the walk over
    /// all jobs, which then waits less between its steps.
    pub(super) async fn recover_cursors(&mut self, now: Instant) -> Result<(), Fault> {
        // Whether a cursor is ahead is judged by the store's time, because this node's clock may be the wrong one.
        let store_now = self.context.ports.store.time().await?;
        let mut newer = None;
        let mut after = None;
        let mut last_job = None;
        loop {
            let page = self.read_page(Query::Cursors { after }).await?;
            for stored in &page.records {
                let Record::Cursor(cursor) = &stored.record else { continue };
                let is_newer = cursor.zones > self.world.zones_version;
                if is_newer && newer.is_none() {
                    newer = Some(cursor.zones.clone());
                }
                let is_older = !cursor.zones.is_empty() && cursor.zones < self.world.zones_version;
                self.watchdog.is_urgent |= is_older;
                let is_soon = is_older && cursor.wake.is_some_and(|wake| wake <= now.plus(SOON));
                let is_ahead = cursor.last.is_some_and(|last| last > store_now.plus(AHEAD_MAX));
                if (is_soon || is_ahead) && last_job.as_ref() != Some(&cursor.job) {
                    last_job = Some(cursor.job.clone());
                    // What the node remembers of it may be from before the clock was set.
                    self.session.evict(&stored.record.key());
                    let replan = Command::Replan { job: cursor.job.clone() };
                    self.commands.push_own(Actor::Recovery, replan);
                }
                self.apply_stored(&stored.record, now).await;
            }
            after = match page.next(PAGE) {
                Some(RecordKey::Cursor(job, schedule)) => Some((job, schedule)),
                _ => break,
            };
        }
        if let Some(theirs) = newer {
            let ours = &self.world.zones_version;
            self.context.emit(&EngineEvent::OlderZones { ours, theirs: &theirs });
        }
        Ok(())
    }

    /// Reads a page of records. Unreadable ones are reported and skipped, so that one of them does not stop the others.
    pub(super) async fn read_page(&self, query: Query) -> Result<Page, Fault> {
        let page = self.context.ports.store.page(&query, PAGE).await?;
        page.unreadable.iter().for_each(|record| self.context.report_unreadable(record));
        Ok(page)
    }

    async fn recover_backlogs(&mut self, now: Instant) -> Result<(), Fault> {
        let next = |last| match last {
            RecordKey::Backlog(job, schedule) => Some(Query::Backlogs { after: Some((job, schedule)) }),
            _ => None,
        };
        self.recover_pages(Query::Backlogs { after: None }, next, now).await
    }

    async fn recover_actions(&mut self, now: Instant) -> Result<(), Fault> {
        let next = |last| match last {
            RecordKey::Action(action) => Some(Query::PendingActions { after: Some(action) }),
            _ => None,
        };
        self.recover_pages(Query::PendingActions { after: None }, next, now).await
    }

    /// What the triggers wait for may have happened while no node was running, so they are decided about at once.
    async fn recover_triggers(&mut self, now: Instant) -> Result<(), Fault> {
        let mut after = None;
        loop {
            let page = self.read_page(Query::PendingTriggers { after }).await?;
            for stored in &page.records {
                self.apply_stored(&stored.record, now).await;
                if let Record::Triggers(set) = &stored.record {
                    self.agenda.put(PlanItem::Batch(set.job.clone()), When::Now);
                }
            }
            after = match page.next(PAGE) {
                Some(RecordKey::Triggers(job)) => Some(job),
                _ => return Ok(()),
            };
        }
    }

    /// Reads and applies all records of a query. `next` returns the query of the page after a record.
    async fn recover_pages(
        &mut self,
        first: Query,
        next: fn(RecordKey) -> Option<Query>,
        now: Instant,
    ) -> Result<(), Fault> {
        let mut query = Some(first);
        while let Some(current) = query {
            let page = self.read_page(current).await?;
            for stored in &page.records {
                self.apply_stored(&stored.record, now).await;
            }
            query = page.next(PAGE).and_then(next);
        }
        Ok(())
    }

    /// Reads all unfinished runs and applies those that `is_wanted` selects. Returns how many there are.
    pub(super) async fn recover_runs(&mut self, now: Instant, is_wanted: fn(&Run) -> bool) -> Result<usize, Fault> {
        let mut after = None;
        let mut count = 0;
        loop {
            let page = self.read_page(Query::Unfinished { node: None, after }).await?;
            count += page.records.len();
            for stored in &page.records {
                let Record::Run(run) = &stored.record else { continue };
                if !is_wanted(run) {
                    continue;
                }
                self.apply_stored(&stored.record, now).await;
                // What the run waits for may have happened while no node was running.
                if run.state == State::Waiting {
                    self.agenda.put(PlanItem::Wake(run.id), When::Now);
                }
            }
            after = match page.next(PAGE) {
                Some(RecordKey::Run(run)) => Some(run),
                _ => return Ok(count),
            };
        }
    }
}

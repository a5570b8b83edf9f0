//! Taking up what is stored. A node that starts asks every record what it owes, by the same rule that the live path
//! follows, so that nothing depends on what an earlier life had in memory.

use cronhold_core::State;
use cronhold_core::command::Command;
use cronhold_core::record::{Actor, Cursor, Key, Record};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Page, Query};

use crate::node::Node;
use crate::plan::Item;
use crate::ports::News;

/// Records on one page.
const PAGE: usize = 2_000;
/// A cursor that is further ahead than this was moved by a clock that was wrong.
const AHEAD_MAX: Span = Span::from_secs(60);

impl Node {
    /// Takes up everything that is stored.
    pub(crate) async fn recover(&mut self) -> Result<(), Fault> {
        let before = self.ports.clock.uptime();
        let now = self.look_at_clock();
        self.recover_cursors(now).await?;
        self.recover_backlogs(now).await?;
        let unfinished = self.recover_runs(now).await?;
        let took = self.ports.clock.uptime().minus(before);
        self.ports.feed.tell(&News::Ready { planned: self.plan.len(), unfinished, took });
        Ok(())
    }

    /// Looks for cursors that a clock that was wrong has moved too far.
    pub(crate) async fn rewind(&mut self, now: Instant) -> Result<(), Fault> {
        self.recover_cursors(now).await
    }

    /// So much was changed by others that everything is taken up anew.
    pub(crate) async fn catch_touch(&mut self, now: Instant) -> Result<(), Fault> {
        self.recover_cursors(now).await?;
        self.recover_backlogs(now).await?;
        self.recover_runs(now).await.map(drop)
    }

    async fn recover_cursors(&mut self, now: Instant) -> Result<(), Fault> {
        // Whether a cursor is ahead is asked by the store's time: the clock that is wrong may be the one of this node.
        let store_now = self.ports.store.time().await?;
        let is_alone = !self.ports.store.is_shared();
        let mut newer = None;
        let mut after = None;
        let mut last_job = None;
        loop {
            let page = self.page(Query::Cursors { after }).await?;
            for stored in &page.records {
                let Record::Cursor(cursor) = &stored.record else { continue };
                let is_newer = cursor.zones > self.world.zones_version;
                if is_newer && newer.is_none() {
                    newer = Some(cursor.zones.clone());
                }
                let is_outdated = self.is_outdated(cursor, store_now) || is_newer && is_alone;
                if is_outdated && last_job.as_ref() != Some(&cursor.job) {
                    last_job = Some(cursor.job.clone());
                    let replan = Command::Replan { job: cursor.job.clone(), even_older: is_alone };
                    self.own.push_back((Actor::Recovery, replan));
                }
                self.take_up(&stored.record, now).await;
            }
            after = match page.next(PAGE) {
                Some(Key::Cursor(job, schedule)) => Some((job, schedule)),
                _ => break,
            };
        }
        if let Some(theirs) = newer {
            let ours = self.world.zones_version.clone();
            self.ports.feed.tell(&News::OlderZones { ours: &ours, theirs: &theirs, is_alone });
        }
        Ok(())
    }

    /// A page of what is stored. What cannot be read is told and left, so that one bad record stops nothing else.
    async fn page(&self, query: Query) -> Result<Page, Fault> {
        let page = self.ports.store.page(&query, PAGE).await?;
        page.unreadable.iter().for_each(|what| self.ports.feed.tell(&News::Dropped(what)));
        Ok(page)
    }

    fn is_outdated(&self, cursor: &Cursor, now: Instant) -> bool {
        let is_ahead = cursor.last.is_some_and(|last| last > now.plus(AHEAD_MAX));
        is_ahead || cursor.zones < self.world.zones_version
    }

    async fn recover_backlogs(&mut self, now: Instant) -> Result<(), Fault> {
        let mut after = None;
        loop {
            let page = self.page(Query::Backlogs { after }).await?;
            for stored in &page.records {
                self.take_up(&stored.record, now).await;
            }
            after = match page.next(PAGE) {
                Some(Key::Backlog(job, schedule)) => Some((job, schedule)),
                _ => return Ok(()),
            };
        }
    }

    async fn recover_runs(&mut self, now: Instant) -> Result<usize, Fault> {
        let mut after = None;
        let mut count = 0;
        loop {
            let page = self.page(Query::Unfinished { node: None, after }).await?;
            count += page.records.len();
            for stored in &page.records {
                self.take_up(&stored.record, now).await;
                // What it waited for may have come true while nobody was there.
                if let Record::Run(run) = &stored.record
                    && run.state == State::Waiting
                {
                    self.plan.put(Item::Wake(run.id), Instant::EPOCH);
                }
            }
            after = match page.next(PAGE) {
                Some(Key::Run(run)) => Some(run),
                _ => return Ok(count),
            };
        }
    }
}

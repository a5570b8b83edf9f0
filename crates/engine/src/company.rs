//! A node among others: what it hears with its beats, who goes first, and what becomes of the runs of a node that is
//! gone. None of this decides whether something happens twice; the commit does. It decides who does it, and how soon.

use std::sync::Arc;

use cronhold_core::command::{Command, Report};
use cronhold_core::job::Nodes;
use cronhold_core::policy::lease::stale_after;
use cronhold_core::policy::rendezvous::{place, wait};
use cronhold_core::record::{Actor, Key, Node as NodeRecord, Record, Run};
use cronhold_core::{JobId, RunId};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Query, all_nodes, has_foreign_nodes};

use crate::beacon::Beaten;
use crate::members::{GONE_AFTER, Silent};
use crate::node::Node;
use crate::plan::Item;
use crate::ports::{News, Ports};

/// Runs of nodes that are gone, in one pass.
const REAPS_MAX: usize = 1_000;
/// For work that nobody is in a hurry for, each place in the order waits so much longer than the one before it.
const UNHURRIED: u64 = 1_000;
/// How often somebody looks whether the holder of a name is still there.
const NAME_LOOK: Span = Span::from_millis(500);

impl Node {
    /// Takes in what came of beats.
    pub(crate) async fn hear_beats(&mut self) {
        let Some(Beaten { time, nodes, skew, lost, fault }) = self.beacon.take() else { return };
        if let Some((asked, heard, time)) = time {
            self.clock.answered(asked, heard, time);
        }
        // Beats tell the store; they may come or go while this node runs.
        self.world.has_foreign = has_foreign_nodes(&*self.ports.store);
        if let Some(skew) = skew
            && let Some(is_off) = self.skew.look(skew)
        {
            self.ports.feed.tell(&News::Skew { is_off, is_ahead: skew.ahead > 0, by: skew.size() });
        }
        for run in lost {
            self.own.push_back((Actor::Watchdog, Command::Report { run, report: Report::LockLost }));
        }
        if let Some((asked, heard, nodes)) = nodes {
            let now = self.look_at_clock();
            self.note_own_record(&nodes, asked, now);
            self.members.see(nodes, asked, heard, now);
            self.count_members();
        }
        match fault {
            // Beats are tried more often than anything else: if each put that off once more, it would never be tried.
            Some(fault) if self.away.is_none() => self.note_trouble(Some(fault)),
            Some(_) => {}
            None => {
                self.note_trouble(None);
                if self.world.is_shared {
                    self.plan.put_by(Item::Reap, Instant::EPOCH);
                }
            }
        }
    }

    /// What others have said to this node, and whether somebody else has its identity.
    fn note_own_record(&mut self, nodes: &[Arc<NodeRecord>], asked: Span, now: Instant) {
        let Some(own) = nodes.iter().find(|node| node.id == self.me.node) else { return };
        if own.incarnation == self.me.incarnation {
            if asked >= self.drain_heard {
                self.note_draining(own.draining, now);
            }
        } else if own.incarnation > self.me.incarnation && !self.is_stopping {
            self.ports.feed.tell(&News::Replaced);
            self.beacon.go_dark();
            self.is_stopping = true;
        }
    }

    /// Whether this node drains.
    pub(crate) fn note_draining(&mut self, draining: bool, now: Instant) {
        if std::mem::replace(&mut self.world.is_draining, draining) != draining {
            self.ports.feed.tell(&News::Draining(draining));
            if !draining {
                // What waited for a node may have waited for this one.
                self.plan.wake_all(now);
            }
        }
    }

    /// Looks who is there now, and tells who came and who went.
    fn count_members(&mut self) {
        let mut live: Vec<Arc<NodeRecord>> = self.members.live(self.ports.clock.uptime()).cloned().collect();
        // Whoever looks is there, also before its first beat was stored.
        if !live.iter().any(|node| node.id == self.me.node) {
            live.extend(self.world.nodes.iter().find(|node| node.id == self.me.node).cloned());
            live.sort_by_key(|node| node.id);
        }
        let is_in = |nodes: &[Arc<NodeRecord>], id| nodes.iter().any(|node| node.id == id);
        for node in live.iter().filter(|node| !is_in(&self.world.nodes, node.id) && node.id != self.me.node) {
            self.ports.feed.tell(&News::NodeCame(&node.name));
        }
        for node in self.world.nodes.iter().filter(|node| !is_in(&live, node.id)) {
            self.ports.feed.tell(&News::NodeGone(&node.name));
        }
        self.world.nodes = live.into();
    }

    /// Until when something that is due is left to others; nothing, when this node goes first.
    pub(crate) fn left_to_others(&self, item: &Item, due: Instant, nominal: Instant, now: Instant) -> Option<Instant> {
        if !self.world.is_shared {
            return None;
        }
        let own_turn = due.plus(wait(self.place(item, nominal)));
        (own_turn > now).then_some(own_turn)
    }

    /// The place of this node in the order for something.
    fn place(&self, item: &Item, nominal: Instant) -> usize {
        let time = nominal.micros().to_be_bytes();
        match item {
            Item::Fire(job, schedule) => self.place_for(Some(job), &[job.as_str(), schedule.as_str()], &time),
            Item::CatchUp(job, schedule) => self.place_for(Some(job), &[job.as_str(), schedule.as_str()], b"catch-up"),
            Item::Wake(run) => self.place_for_run(*run),
            Item::Watch | Item::Reap | Item::Hear | Item::Prune(_) | Item::Expire(_) => 0,
        }
    }

    /// What has a program here, or is for this node alone, is nobody else's.
    fn place_for_run(&self, id: RunId) -> usize {
        let run = match self.desk.remembered(&Key::Run(id)) {
            Some(Record::Run(run)) => Some(run),
            _ => None,
        };
        if self.programs.contains(&id) || run.is_some_and(|run| run.target == Some(self.me.node)) {
            return 0;
        }
        self.place_for(run.map(|run| &run.job), &[], &id.bits().to_be_bytes())
    }

    fn place_for(&self, job: Option<&JobId>, names: &[&str], what: &[u8]) -> usize {
        let job = job.and_then(|job| self.desk.remembered(&Key::Job(job.clone())));
        let nodes = match job {
            Some(Record::Job(job)) => job.job.nodes.clone(),
            _ => Nodes::Any,
        };
        if !self.world.is_eligible(&nodes) {
            return usize::MAX;
        }
        let may = self.world.nodes.iter().filter(|node| !node.draining && nodes.allow(&node.labels));
        let parts: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).chain([what]).collect();
        place(self.me.node, may, &parts)
    }

    /// When this node does something about a run that others could do as well, and that it has heard of only now.
    pub(crate) fn own_turn(&self, item: &Item, now: Instant) -> Instant {
        // Whoever made the change goes first.
        now.plus(wait(self.place(item, now).saturating_add(1)))
    }

    /// How much longer this node waits with something unhurried than the first would.
    pub(crate) fn unhurried(&self, item: &Item, nominal: Instant) -> Span {
        if !self.world.is_shared {
            return Span::ZERO;
        }
        let place = u64::try_from(self.place(item, nominal)).unwrap_or(u64::MAX).min(10);
        Span::from_millis(place * UNHURRIED)
    }

    /// Looks after the runs of nodes that are gone.
    pub(crate) async fn reap(&mut self) -> Result<(), Fault> {
        self.count_members();
        let silent: Vec<Silent> = self.members.silent(self.ports.clock.uptime()).collect();
        self.empty.retain(|node, beat| silent.iter().any(|gone| gone.node == *node && gone.beat == *beat));
        for gone in silent.into_iter().filter(|gone| gone.node != self.me.node) {
            if self.empty.contains_key(&gone.node) {
                continue;
            }
            let query = Query::Unfinished { node: Some(gone.node), after: None };
            let page = self.ports.store.page(&query, REAPS_MAX).await?;
            if page.records.is_empty() && page.unreadable.is_empty() {
                self.empty.insert(gone.node, gone.beat);
            }
            for stored in &page.records {
                if let Record::Run(run) = &stored.record
                    && self.is_lost(run, gone)
                {
                    self.own.push_back((Actor::Watchdog, Command::Reap { run: run.id, beat: gone.beat }));
                }
            }
        }
        Ok(())
    }

    fn is_lost(&self, run: &Run, gone: Silent) -> bool {
        let patience = stale_after(&run.terms).plus(self.unhurried(&Item::Wake(run.id), run.nominal));
        gone.unchanged >= patience
    }
}

/// Waits until nobody else who is there has a name; tells who has it, when that is for long.
pub(crate) async fn await_name(ports: &Ports, me: &NodeRecord) -> Result<Option<Arc<NodeRecord>>, Fault> {
    let now = ports.store.time().await?;
    let is_rival = |node: &Arc<NodeRecord>| node.id != me.id && node.name == me.name && node.gone > now;
    let Some(rival) = all_nodes(&*ports.store).await?.into_iter().find(is_rival) else { return Ok(None) };
    let begin = ports.clock.uptime();
    // It may have gone a moment ago, and says so by not being heard of.
    while ports.clock.uptime().minus(begin) < GONE_AFTER {
        ports.clock.sleep(NAME_LOOK).await;
        let nodes = all_nodes(&*ports.store).await?;
        if nodes.iter().any(|node| node.id == rival.id && node.beat != rival.beat) {
            return Ok(Some(rival));
        }
    }
    Ok(None)
}

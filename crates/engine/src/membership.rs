//! A node among other nodes: its heartbeats, the nodes that it sees, and the runs of nodes that are gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::command::Command;
use cronhold_core::policy::lease::lost_after;
use cronhold_core::record::{NodeRecord, Record, Run, RunOwner};
use cronhold_core::{DecisionContext, NodeId};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Query, Store, all_nodes};

use crate::claim_order::ClaimOrder;
use crate::heartbeater::{HeartbeatResult, Heartbeater};
use crate::members::{GONE_AFTER, ObservedNodes, SilentNode};
use crate::plan::PlanItem;
use crate::ports::{EngineEvent, NodePorts};
use crate::skew::{Skew, SkewWatch};

/// Runs of one node that is gone, in one pass.
const REAPS_MAX: usize = 1_000;
/// The time between two checks whether another node with the same name is alive.
const NAME_CHECK_EVERY: Span = Span::from_millis(500);

/// What a node knows about itself and others as members of a cluster.
#[derive(Debug)]
pub(crate) struct Membership {
    me: RunOwner,
    heartbeater: Heartbeater,
    members: ObservedNodes,
    /// Nodes that are gone and own no runs, with their last heartbeat.
    reaped: BTreeMap<NodeId, Instant>,
    skew: SkewWatch,
    /// The uptime at which this node last read from its record whether it drains. A list of nodes that was requested
    /// before that may be older.
    drain_read_at: Span,
}

/// What a node learns from its own stored record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnRecord {
    /// The node drains, or does not.
    Draining(bool),
    /// A later process has started with the identity of this node.
    Replaced,
    /// The record contains nothing new.
    Unchanged,
}

impl Membership {
    pub(crate) fn new(me: RunOwner, heartbeater: Heartbeater) -> Self {
        let (members, reaped, skew) = (ObservedNodes::default(), BTreeMap::new(), SkewWatch::default());
        Self { me, heartbeater, members, reaped, skew, drain_read_at: Span::ZERO }
    }

    /// The part that sends heartbeats.
    pub(crate) fn heartbeater(&self) -> &Heartbeater {
        &self.heartbeater
    }

    /// The results of heartbeats since the last call.
    pub(crate) fn take_results(&self) -> Option<HeartbeatResult> {
        self.heartbeater.take_results()
    }

    /// Whether the store has answered a heartbeat so recently that other nodes cannot believe that this one is gone.
    pub(crate) fn is_fresh(&self, uptime: Span) -> bool {
        self.heartbeater.is_fresh(uptime)
    }

    /// Records a measurement of the node's own clock. Returns whether the clock is off, if that has changed.
    pub(crate) fn record_skew(&mut self, skew: Skew) -> Option<bool> {
        self.skew.record(skew)
    }

    /// Records that this node has read from its record at an uptime whether it drains.
    pub(crate) fn record_drain(&mut self, uptime: Span) {
        self.drain_read_at = uptime;
    }

    /// Reads what the record of this node says, from a list of nodes that was requested at an uptime.
    pub(crate) fn read_own_record(&self, nodes: &[Arc<NodeRecord>], requested: Span) -> OwnRecord {
        let Some(own) = nodes.iter().find(|node| node.id == self.me.node) else { return OwnRecord::Unchanged };
        if own.incarnation > self.me.incarnation {
            return OwnRecord::Replaced;
        }
        if own.incarnation == self.me.incarnation && requested >= self.drain_read_at {
            return OwnRecord::Draining(own.draining);
        }
        OwnRecord::Unchanged
    }

    /// Records all nodes of the store, from a list that was requested and received at two uptimes.
    pub(crate) fn record_nodes(&mut self, nodes: Vec<Arc<NodeRecord>>, requested: Span, received: Span, now: Instant) {
        self.members.record(nodes, requested, received, now);
    }

    /// Updates the live nodes in `world`, and reports which have joined and which are gone.
    pub(crate) fn update_live_nodes(&self, world: &mut DecisionContext, ports: &NodePorts) {
        let mut live: Vec<Arc<NodeRecord>> = self.members.live(ports.clock.uptime()).cloned().collect();
        // This node is alive even before the store has its first heartbeat.
        if !live.iter().any(|node| node.id == self.me.node) {
            live.extend(world.nodes.iter().find(|node| node.id == self.me.node).cloned());
            live.sort_by_key(|node| node.id);
        }
        let is_in = |nodes: &[Arc<NodeRecord>], id| nodes.iter().any(|node| node.id == id);
        for node in live.iter().filter(|node| !is_in(&world.nodes, node.id) && node.id != self.me.node) {
            ports.feed.on_event(&EngineEvent::NodeJoined(&node.name));
        }
        for node in world.nodes.iter().filter(|node| !is_in(&live, node.id)) {
            ports.feed.on_event(&EngineEvent::NodeGone(&node.name));
        }
        let others = with_other_zones(&live, &world.zones_version);
        if others != with_other_zones(&world.nodes, &world.zones_version) {
            ports.feed.on_event(&EngineEvent::ZonesDiffer { ours: &world.zones_version, others: &others });
        }
        world.nodes = live.into();
    }

    /// Finds runs of nodes that are gone. Returns the commands that declare them lost.
    pub(crate) async fn reap(
        &mut self,
        store: &dyn Store,
        order: ClaimOrder<'_>,
        uptime: Span,
    ) -> Result<Vec<Command>, Fault> {
        let mut commands = Vec::new();
        let silent: Vec<SilentNode> = self.members.silent(uptime).collect();
        self.reaped.retain(|node, beat| silent.iter().any(|gone| gone.node == *node && gone.beat == *beat));
        for gone in silent.into_iter().filter(|gone| gone.node != self.me.node) {
            if self.reaped.contains_key(&gone.node) {
                continue;
            }
            let query = Query::Unfinished { node: Some(gone.node), after: None };
            let page = store.page(&query, REAPS_MAX).await?;
            if page.records.is_empty() && page.unreadable.is_empty() {
                self.reaped.insert(gone.node, gone.beat);
            }
            for stored in &page.records {
                if let Record::Run(run) = &stored.record
                    && is_lost(run, gone, order)
                {
                    commands.push(Command::Reap { run: run.id, beat: gone.beat });
                }
            }
        }
        Ok(commands)
    }
}

/// The names of the nodes whose zone data is of another release, with their releases.
fn with_other_zones(nodes: &[Arc<NodeRecord>], ours: &str) -> Vec<(String, String)> {
    let is_other = |node: &&Arc<NodeRecord>| !node.zones.is_empty() && node.zones != ours;
    nodes.iter().filter(is_other).map(|node| (node.name.clone(), node.zones.clone())).collect()
}

fn is_lost(run: &Run, gone: SilentNode, order: ClaimOrder<'_>) -> bool {
    let delay = order.repair_delay(&PlanItem::Wake(run.id), run.nominal);
    gone.unchanged >= lost_after(run).plus(delay)
}

/// Waits until no other live node has the name of this one. Returns the other node if it stays alive.
pub(crate) async fn wait_for_name(ports: &NodePorts, me: &NodeRecord) -> Result<Option<Arc<NodeRecord>>, Fault> {
    let now = ports.store.time().await?;
    let is_rival = |node: &Arc<NodeRecord>| node.id != me.id && node.name == me.name && node.gone > now;
    let Some(rival) = all_nodes(&*ports.store).await?.into_iter().find(is_rival) else { return Ok(None) };
    let begin = ports.clock.uptime();
    // The other node may have stopped a moment ago. If it is alive, its heartbeat changes.
    while ports.clock.uptime().minus(begin) < GONE_AFTER {
        ports.clock.sleep(NAME_CHECK_EVERY).await;
        let nodes = all_nodes(&*ports.store).await?;
        if nodes.iter().any(|node| node.id == rival.id && node.beat != rival.beat) {
            return Ok(Some(rival));
        }
    }
    Ok(None)
}

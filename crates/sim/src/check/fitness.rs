//! Tracks which nodes are able to work, and since when. A node that is down, cannot reach the store, has a clock that
//! was just set or sends no heartbeats is not held responsible.

use std::collections::BTreeMap;

use cronhold_core::NodeId;
use cronhold_schedule::Span;

use super::DaemonChange;

/// Maximum time between heartbeats. Nodes send one every two seconds; in between are a few calls of up to two seconds
/// each way.
const BEAT_MAX: Span = Span::from_secs(10);
/// A node claims nothing for this long after its clock was set.
const HOLD: Span = Span::from_secs(10);

/// The faults of all nodes.
#[derive(Debug, Default)]
pub(super) struct FaultWindows {
    nodes: BTreeMap<NodeId, NodeFaults>,
    /// Store faults that affect all nodes.
    all: FaultCount,
}

#[derive(Debug, Default)]
struct NodeFaults {
    is_up: bool,
    since: Span,
    beat: Option<Span>,
    periods: FaultCount,
    keeper: FaultCount,
}

/// Number of active periods of store faults, and when the last one ended.
#[derive(Debug, Default)]
struct FaultCount {
    count: u32,
    until: Span,
}

impl FaultCount {
    fn end(&mut self, at: Span) {
        self.count = self.count.saturating_sub(1);
        self.until = at;
    }
}

impl FaultWindows {
    /// Records a change of the daemon of a node, or of all nodes.
    pub(super) fn daemon_changed(&mut self, node: Option<NodeId>, change: DaemonChange, at: Span) {
        let fit = node.map(|node| self.nodes.entry(node).or_default());
        match (change, fit) {
            (DaemonChange::StoreFaultBegins, None) => self.all.count += 1,
            (DaemonChange::StoreFaultEnds, None) => self.all.end(at),
            (DaemonChange::StoreFaultBegins, Some(fit)) => fit.periods.count += 1,
            (DaemonChange::StoreFaultEnds, Some(fit)) => fit.periods.end(at),
            (DaemonChange::KeeperFails, Some(fit)) => fit.keeper.count = 1,
            (DaemonChange::KeeperWorks, Some(fit)) => fit.keeper.end(at),
            (DaemonChange::KeeperFails | DaemonChange::KeeperWorks, None) => {}
            (DaemonChange::SlowCall { .. } | DaemonChange::HintLost, _) => {}
            (DaemonChange::Up, Some(fit)) => (fit.is_up, fit.since, fit.beat) = (true, at, None),
            (DaemonChange::Down, Some(fit)) => fit.is_up = false,
            (DaemonChange::Disturbed, Some(fit)) => fit.since = fit.since.max(at.plus(HOLD)),
            (DaemonChange::Up | DaemonChange::Down | DaemonChange::Disturbed, None) => {
                let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
                nodes.into_iter().for_each(|node| self.daemon_changed(Some(node), change, at));
            }
        }
    }

    /// Records a heartbeat.
    pub(super) fn heartbeat(&mut self, node: NodeId, at: Span) {
        let fit = self.nodes.entry(node).or_default();
        // A node that sent no heartbeats in between was not able to work.
        if fit.beat.is_some_and(|last| at.minus(last) > BEAT_MAX) {
            fit.since = fit.since.max(at);
        }
        fit.beat = Some(at);
    }

    /// Since when a node has been able to work; `None` if it is not. With a local store, heartbeats are too rare to
    /// count.
    pub(super) fn since(&self, node: NodeId, at: Span, is_shared: bool) -> Option<Span> {
        let keeper = &self.nodes.get(&node)?.keeper;
        let since = self.since_without_keeper(node, at, is_shared).filter(|_| keeper.count == 0)?;
        Some(since.max(keeper.until))
    }

    /// Since when a node has been able to do what needs no keeper; `None` if it is not.
    pub(super) fn since_without_keeper(&self, node: NodeId, at: Span, is_shared: bool) -> Option<Span> {
        let fit = self.nodes.get(&node).filter(|fit| fit.is_up)?;
        let is_heard = fit.beat.is_some_and(|last| at.minus(last) <= BEAT_MAX);
        let is_calm = fit.periods.count == 0 && self.all.count == 0;
        let since = fit.since.max(fit.periods.until).max(self.all.until);
        (is_calm && (is_heard || !is_shared)).then_some(since)
    }
}

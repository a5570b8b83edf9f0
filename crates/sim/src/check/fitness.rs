//! Which nodes were able to do their work, and since when. Who is down, cannot reach the store, has a clock that was just
//! set or is not heard of cannot be blamed.

use std::collections::BTreeMap;

use cronhold_core::NodeId;
use cronhold_schedule::Span;

use super::DaemonChange;

/// Nodes are heard of every two seconds; between two beats there are a few calls, of up to two seconds each way.
const BEAT_MAX: Span = Span::from_secs(10);
/// A node whose clock was set claims nothing for this long.
const HOLD: Span = Span::from_secs(10);

/// What is known of all nodes.
#[derive(Debug, Default)]
pub(super) struct FaultWindows {
    nodes: BTreeMap<NodeId, NodeFaults>,
    /// What befalls all of them.
    all: StormCount,
}

#[derive(Debug, Default)]
struct NodeFaults {
    is_up: bool,
    since: Span,
    beat: Option<Span>,
    storms: StormCount,
}

/// How many storms there are, and when the last one ended.
#[derive(Debug, Default)]
struct StormCount {
    count: u32,
    until: Span,
}

impl StormCount {
    fn end(&mut self, at: Span) {
        self.count = self.count.saturating_sub(1);
        self.until = at;
    }
}

impl FaultWindows {
    /// The daemon of a node, or of all, came, went or was disturbed.
    pub(super) fn turned(&mut self, node: Option<NodeId>, turn: DaemonChange, at: Span) {
        let fit = node.map(|node| self.nodes.entry(node).or_default());
        match (turn, fit) {
            (DaemonChange::Storm, None) => self.all.count += 1,
            (DaemonChange::Lull, None) => self.all.end(at),
            (DaemonChange::Storm, Some(fit)) => fit.storms.count += 1,
            (DaemonChange::Lull, Some(fit)) => fit.storms.end(at),
            (DaemonChange::Up, Some(fit)) => (fit.is_up, fit.since, fit.beat) = (true, at, None),
            (DaemonChange::Down, Some(fit)) => fit.is_up = false,
            (DaemonChange::Disturbed, Some(fit)) => fit.since = fit.since.max(at.plus(HOLD)),
            (DaemonChange::Up | DaemonChange::Down | DaemonChange::Disturbed, None) => {
                let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
                nodes.into_iter().for_each(|node| self.turned(Some(node), turn, at));
            }
        }
    }

    /// A node was heard of.
    pub(super) fn beaten(&mut self, node: NodeId, at: Span) {
        let fit = self.nodes.entry(node).or_default();
        // One that stood still in between could not do anything either.
        if fit.beat.is_some_and(|last| at.minus(last) > BEAT_MAX) {
            fit.since = fit.since.max(at);
        }
        fit.beat = Some(at);
    }

    /// Since when a node has been able to work; nothing, when it is not. Alone on a store a node is heard of too seldom
    /// for that to mean anything.
    pub(super) fn since(&self, node: NodeId, at: Span, is_shared: bool) -> Option<Span> {
        let fit = self.nodes.get(&node).filter(|fit| fit.is_up)?;
        let is_heard = fit.beat.is_some_and(|last| at.minus(last) <= BEAT_MAX);
        let is_calm = fit.storms.count == 0 && self.all.count == 0;
        let since = fit.since.max(fit.storms.until).max(self.all.until);
        (is_calm && (is_heard || !is_shared)).then_some(since)
    }
}

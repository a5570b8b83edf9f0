//! The nodes that share a store, and which of them are alive. A node counts as gone when its heartbeat has not changed for
//! a while, measured by the uptime of the observer. No clock of another machine is trusted.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::NodeId;
use cronhold_core::record::NodeRecord;
use cronhold_schedule::{Instant, Span};

/// A node whose heartbeat has not changed for this time is gone.
pub(crate) const GONE_AFTER: Span = Span::from_secs(6);

/// The nodes of a store, as this node has observed them.
#[derive(Debug, Default)]
pub(crate) struct ObservedNodes(BTreeMap<NodeId, ObservedNode>);

/// A node, and since when its heartbeat has not changed.
#[derive(Debug)]
struct ObservedNode {
    node: Arc<NodeRecord>,
    /// The uptime at which its current heartbeat was first received.
    since: Span,
    /// The uptime at which the latest list that contained it was requested.
    until: Span,
    /// Whether its record, when it was first received, marked the node as gone.
    was_gone: bool,
}

/// A node that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SilentNode {
    /// The node's id.
    pub(crate) node: NodeId,
    /// Its last heartbeat, by its own time.
    pub(crate) beat: Instant,
    /// How long that heartbeat has not changed, at least.
    pub(crate) unchanged: Span,
}

impl ObservedNodes {
    /// Records all nodes, from a list that was requested and received at two uptimes.
    pub(crate) fn record(&mut self, nodes: Vec<Arc<NodeRecord>>, requested: Span, received: Span, now: Instant) {
        let mut seen = BTreeMap::new();
        for node in nodes {
            let before = self.0.remove(&node.id);
            let is_same = |old: &ObservedNode| old.node.beat == node.beat && old.node.incarnation == node.incarnation;
            let member = match before {
                Some(old) if is_same(&old) => ObservedNode { node, until: requested, ..old },
                Some(_) => ObservedNode { node, since: received, until: requested, was_gone: false },
                None => ObservedNode { was_gone: !node.is_there(now), node, since: received, until: requested },
            };
            seen.insert(member.node.id, member);
        }
        self.0 = seen;
    }

    /// The nodes that are alive, ordered by id.
    pub(crate) fn live(&self, uptime: Span) -> impl Iterator<Item = &Arc<NodeRecord>> {
        self.0.values().filter(move |member| member.is_live(uptime)).map(|member| &member.node)
    }

    /// The nodes that are gone, ordered by id.
    pub(crate) fn silent(&self, uptime: Span) -> impl Iterator<Item = SilentNode> + '_ {
        self.0.values().filter(move |member| !member.is_live(uptime)).map(|member| SilentNode {
            node: member.node.id,
            beat: member.node.beat,
            unchanged: member.until.minus(member.since),
        })
    }
}

impl ObservedNode {
    fn is_live(&self, uptime: Span) -> bool {
        let has_left = self.node.gone <= self.node.beat;
        !self.was_gone && !has_left && uptime.minus(self.since) < GONE_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(bits: u128, beat: i64) -> Arc<NodeRecord> {
        let beat = Instant::from_secs(beat);
        let gone = beat.plus(GONE_AFTER);
        Arc::new(NodeRecord { gone, ..NodeRecord::new(NodeId::from_bits(bits), bits.to_string(), 1, beat) })
    }

    fn up(secs: u64) -> Span {
        Span::from_secs(secs)
    }

    #[test]
    fn node_is_alive_while_its_heartbeat_changes() {
        let mut members = ObservedNodes::default();
        let now = Instant::from_secs(105);
        // The record of the second node marks it as gone, so a new observer need not wait.
        members.record(vec![node(1, 101), node(2, 50)], up(10), up(11), now);
        let live = |members: &ObservedNodes, at| members.live(up(at)).map(|node| node.id.bits()).collect::<Vec<_>>();
        assert_eq!(live(&members, 12), [1]);
        members.record(vec![node(1, 101), node(2, 50)], up(14), up(15), now);
        assert_eq!((live(&members, 16), live(&members, 17)), (vec![1], vec![]));
        let silent: Vec<_> =
            members.silent(up(17)).map(|silent| (silent.node.bits(), silent.unchanged.secs())).collect();
        assert_eq!(silent, [(1, 3), (2, 3)], "measured from the first reception to the last request");
        members.record(vec![node(1, 120), node(2, 121)], up(20), up(20), now);
        assert_eq!(live(&members, 21), [1, 2]);
    }
}

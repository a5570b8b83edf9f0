//! Who is there. A node counts as gone when its beat was seen unchanged for a while, by the uptime of whoever looks: no
//! clock of another machine is believed.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::NodeId;
use cronhold_core::record::Node;
use cronhold_schedule::{Instant, Span};

/// A node whose beat does not change for so long is gone.
pub(crate) const GONE_AFTER: Span = Span::from_secs(6);

/// The nodes of a store, as one of them sees them.
#[derive(Debug, Default)]
pub(crate) struct Members(BTreeMap<NodeId, Member>);

/// A node, and for how long it was seen as it is.
#[derive(Debug)]
struct Member {
    node: Arc<Node>,
    /// Uptime at which this beat was first seen.
    since: Span,
    /// Uptime at which the latest look that saw it began.
    until: Span,
    /// Whether it said itself, when it was first seen, that it is gone by then.
    was_gone: bool,
}

/// A node that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Silent {
    /// Which.
    pub(crate) node: NodeId,
    /// When it was heard of last, as it says itself.
    pub(crate) beat: Instant,
    /// For how long it was seen so, at least.
    pub(crate) unchanged: Span,
}

impl Members {
    /// Takes note of all nodes there are, as they were at a time between two uptimes.
    pub(crate) fn see(&mut self, nodes: Vec<Arc<Node>>, asked: Span, heard: Span, now: Instant) {
        let mut seen = BTreeMap::new();
        for node in nodes {
            let before = self.0.remove(&node.id);
            let is_same = |old: &Member| old.node.beat == node.beat && old.node.incarnation == node.incarnation;
            let member = match before {
                Some(old) if is_same(&old) => Member { node, until: asked, ..old },
                Some(_) => Member { node, since: heard, until: asked, was_gone: false },
                None => Member { was_gone: !node.is_there(now), node, since: heard, until: asked },
            };
            seen.insert(member.node.id, member);
        }
        self.0 = seen;
    }

    /// Those that are there, by their ids.
    pub(crate) fn live(&self, uptime: Span) -> impl Iterator<Item = &Arc<Node>> {
        self.0.values().filter(move |member| member.is_live(uptime)).map(|member| &member.node)
    }

    /// Those that are gone, by their ids.
    pub(crate) fn silent(&self, uptime: Span) -> impl Iterator<Item = Silent> + '_ {
        self.0.values().filter(move |member| !member.is_live(uptime)).map(|member| Silent {
            node: member.node.id,
            beat: member.node.beat,
            unchanged: member.until.minus(member.since),
        })
    }
}

impl Member {
    fn is_live(&self, uptime: Span) -> bool {
        let has_left = self.node.gone <= self.node.beat;
        !self.was_gone && !has_left && uptime.minus(self.since) < GONE_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(bits: u128, beat: i64) -> Arc<Node> {
        let beat = Instant::from_secs(beat);
        let gone = beat.plus(GONE_AFTER);
        Arc::new(Node { gone, ..Node::new(NodeId::from_bits(bits), bits.to_string(), 1, beat) })
    }

    fn up(secs: u64) -> Span {
        Span::from_secs(secs)
    }

    #[test]
    fn nodes_are_there_while_their_beats_change() {
        let mut members = Members::default();
        let now = Instant::from_secs(105);
        // The second is long gone by its own word, and whoever has just come need not wait to see that.
        members.see(vec![node(1, 101), node(2, 50)], up(10), up(11), now);
        let live = |members: &Members, at| members.live(up(at)).map(|node| node.id.bits()).collect::<Vec<_>>();
        assert_eq!(live(&members, 12), [1]);
        members.see(vec![node(1, 101), node(2, 50)], up(14), up(15), now);
        assert_eq!((live(&members, 16), live(&members, 17)), (vec![1], vec![]));
        let silent: Vec<_> =
            members.silent(up(17)).map(|silent| (silent.node.bits(), silent.unchanged.secs())).collect();
        assert_eq!(silent, [(1, 3), (2, 3)], "from when it was first heard of to when it was last asked for");
        members.see(vec![node(1, 120), node(2, 121)], up(20), up(20), now);
        assert_eq!(live(&members, 21), [1, 2]);
    }
}

//! Rendezvous order: which of several nodes does something first. All nodes compute the same order from the item and
//! the live nodes, so there is no election; if the first node is gone, the second acts a moment later.

use std::sync::Arc;

use cronhold_schedule::Span;
use sha2::{Digest, Sha256};

use crate::ids::NodeId;
use crate::record::NodeRecord;

/// How much longer each position waits than the one before it.
const STEP: Span = Span::from_millis(50);
/// The longest wait.
const MOST: Span = Span::from_millis(500);

/// The position of a node among the eligible ones, from 0. A node that is not eligible comes last.
pub fn place<'n>(me: NodeId, may: impl Iterator<Item = &'n Arc<NodeRecord>>, what: &[&[u8]]) -> usize {
    let mine = weight(me, what);
    may.filter(|node| node.id != me && weight(node.id, what) > mine).count()
}

/// How long the node at a position waits.
pub fn wait(place: usize) -> Span {
    let steps = u64::try_from(place).unwrap_or(u64::MAX);
    Span::from_micros(steps.saturating_mul(STEP.micros())).min(MOST)
}

fn weight(node: NodeId, what: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(node.bits().to_be_bytes());
    for part in what {
        // Each part is prefixed by its length, so that different lists of parts have different hashes.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cronhold_schedule::Instant;

    use super::*;

    fn node(bits: u128) -> Arc<NodeRecord> {
        Arc::new(NodeRecord::new(NodeId::from_bits(bits), bits.to_string(), 1, Instant::EPOCH))
    }

    #[test]
    fn nodes_have_distinct_positions_that_all_compute_alike() {
        let nodes: Vec<Arc<NodeRecord>> = (1..=5).map(node).collect();
        let mut firsts = [0; 5];
        for number in 0..1_000_u32 {
            let what = number.to_be_bytes();
            let places: Vec<usize> = nodes.iter().map(|me| place(me.id, nodes.iter(), &[&what])).collect();
            let apart: BTreeSet<usize> = places.iter().copied().collect();
            assert_eq!(apart, (0..5).collect::<BTreeSet<usize>>(), "{places:?}");
            firsts[places.iter().position(|place| *place == 0).expect("one node is first")] += 1;
            // Without the first, the others move up and keep their order.
            let others: Vec<&Arc<NodeRecord>> =
                nodes.iter().zip(&places).filter(|(_, at)| **at > 0).map(|(n, _)| n).collect();
            for (me, before) in nodes.iter().zip(&places).filter(|(_, at)| **at > 0) {
                assert_eq!(place(me.id, others.iter().copied(), &[&what]), before - 1);
            }
        }
        assert!(firsts.iter().all(|count| (140..=260).contains(count)), "{firsts:?}");
    }

    #[test]
    fn waits_are_short() {
        assert_eq!([0, 1, 3, 10, usize::MAX].map(|place| wait(place).millis()), [0, 50, 150, 500, 500]);
    }
}

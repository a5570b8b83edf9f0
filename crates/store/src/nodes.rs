//! The list of nodes, read as a whole: there are few of them, and whoever asks wants to compare them all.

use std::sync::Arc;

use cronhold_core::record::{Key, Node, Record};

use crate::{Fault, Query, Store};

/// Nodes that are read at once.
const PAGE: usize = 500;
/// Nodes that are looked at.
const NODES_MAX: usize = 10_000;

/// All nodes that a store knows, by id.
pub async fn all_nodes(store: &dyn Store) -> Result<Vec<Arc<Node>>, Fault> {
    let mut nodes = Vec::new();
    let mut after = None;
    while nodes.len() < NODES_MAX {
        let page = store.page(&Query::Nodes { after }, PAGE).await?;
        nodes.extend(page.records.iter().filter_map(|stored| match &stored.record {
            Record::Node(node) => Some(Arc::clone(node)),
            _ => None,
        }));
        after = match page.next(PAGE) {
            Some(Key::Node(last)) => Some(last),
            _ => break,
        };
    }
    Ok(nodes)
}

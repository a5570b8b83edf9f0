//! Reads the whole list of nodes: they are few, and callers compare them all.

use std::sync::Arc;

use cronhold_core::record::{NodeRecord, Record, RecordKey};

use crate::{Fault, Query, Store};

/// Nodes of one page.
const PAGE: usize = 500;
/// Nodes that are read at most.
const NODES_MAX: usize = 10_000;

/// All stored nodes, ordered by id.
pub async fn all_nodes(store: &dyn Store) -> Result<Vec<Arc<NodeRecord>>, Fault> {
    let mut nodes = Vec::new();
    let mut after = None;
    while nodes.len() < NODES_MAX {
        let page = store.page(&Query::Nodes { after }, PAGE).await?;
        nodes.extend(page.records.iter().filter_map(|stored| match &stored.record {
            Record::Node(node) => Some(Arc::clone(node)),
            _ => None,
        }));
        after = match page.next(PAGE) {
            Some(RecordKey::Node(last)) => Some(last),
            _ => break,
        };
    }
    Ok(nodes)
}

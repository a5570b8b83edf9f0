//! Runs in responses, with the names of nodes instead of their ids. Runs of nodes that the store no longer has keep the
//! id.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_api::RunSummary;
use cronhold_core::NodeId;
use cronhold_core::record::{Record, RecordKey};
use cronhold_store::{Fault, Store, load_readable};

use crate::find_run::ListedRun;

/// A cache of node names; `None` for nodes that the store does not have.
#[derive(Debug, Default)]
pub(crate) struct NodeNames(BTreeMap<NodeId, Option<String>>);

impl NodeNames {
    /// Loads the names of all nodes of some runs.
    pub(crate) async fn of(store: &dyn Store, runs: &[ListedRun]) -> Result<Self, Fault> {
        let mut names = Self::default();
        names.learn(store, runs.iter().filter_map(ListedRun::node)).await?;
        Ok(names)
    }

    /// Loads the names of those nodes that are not in the cache.
    pub(crate) async fn learn(&mut self, store: &dyn Store, nodes: impl Iterator<Item = NodeId>) -> Result<(), Fault> {
        let nodes: BTreeSet<NodeId> = nodes.filter(|node| !self.0.contains_key(node)).collect();
        let keys: Vec<RecordKey> = nodes.iter().copied().map(RecordKey::Node).collect();
        if keys.is_empty() {
            return Ok(());
        }
        self.0.extend(nodes.into_iter().map(|node| (node, None)));
        for (_, stored) in load_readable(store, &keys).await?.records {
            if let Some(Record::Node(node)) = stored.map(|stored| stored.record) {
                self.0.insert(node.id, Some(node.name.clone()));
            }
        }
        Ok(())
    }

    /// A run, with the name of its node, or a span of skips in a response.
    pub(crate) fn summary(&self, listed: &ListedRun) -> RunSummary {
        let name = listed.node().and_then(|node| self.0.get(&node)?.clone());
        let mut summary = match listed {
            ListedRun::Run(run) => RunSummary::from(&**run),
            ListedRun::SkipSpan(span) => RunSummary::from(&**span),
        };
        summary.node = name.or(summary.node);
        summary
    }
}

/// One run, with the name of its node, or one span of skips in a response.
pub(crate) async fn summary(store: &dyn Store, listed: &ListedRun) -> Result<RunSummary, Fault> {
    Ok(NodeNames::of(store, std::slice::from_ref(listed)).await?.summary(listed))
}

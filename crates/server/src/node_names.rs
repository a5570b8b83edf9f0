//! Runs in responses, with the names of nodes instead of their ids. Runs of nodes that the store no longer has keep the
//! id.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_api::RunSummary;
use cronhold_core::NodeId;
use cronhold_core::record::{self, Record, RecordKey};
use cronhold_store::{Fault, Store};

/// A cache of node names; `None` for nodes that the store does not have.
#[derive(Debug, Default)]
pub(crate) struct NodeNames(BTreeMap<NodeId, Option<String>>);

impl NodeNames {
    /// Loads the names of all nodes of some runs.
    pub(crate) async fn of(store: &dyn Store, runs: impl Iterator<Item = &record::Run>) -> Result<Self, Fault> {
        let mut names = Self::default();
        names.learn(store, runs).await?;
        Ok(names)
    }

    /// Loads the names of nodes that are not in the cache.
    pub(crate) async fn learn(
        &mut self,
        store: &dyn Store,
        runs: impl Iterator<Item = &record::Run>,
    ) -> Result<(), Fault> {
        let nodes = runs.filter_map(|run| Some(run.owner?.node)).filter(|node| !self.0.contains_key(node));
        let nodes: BTreeSet<NodeId> = nodes.collect();
        let keys: Vec<RecordKey> = nodes.iter().copied().map(RecordKey::Node).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let names = store.load(&keys).await?.into_iter().map(|stored| match stored?.record {
            Record::Node(node) => Some(node.name.clone()),
            _ => None,
        });
        self.0.extend(nodes.into_iter().zip(names));
        Ok(())
    }

    /// A run in a response, with the name of its node.
    pub(crate) fn summary(&self, run: &record::Run) -> RunSummary {
        let name = run.owner.and_then(|owner| self.0.get(&owner.node)?.clone());
        let mut summary = RunSummary::from(run);
        summary.node = name.or(summary.node);
        summary
    }
}

/// One run in a response, with the name of its node.
pub(crate) async fn summary(store: &dyn Store, run: &record::Run) -> Result<RunSummary, Fault> {
    Ok(NodeNames::of(store, [run].into_iter()).await?.summary(run))
}

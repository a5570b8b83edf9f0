//! Runs as they are told: with the names of nodes, which people know, in the place of their ids, which they do not. Runs
//! of nodes that nobody knows any more keep the id.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_api::RunSummary;
use cronhold_core::NodeId;
use cronhold_core::record::{self, Record, RecordKey};
use cronhold_store::{Fault, Store};

/// Names of nodes, as far as someone has asked for them.
#[derive(Debug, Default)]
pub(crate) struct NodeNames(BTreeMap<NodeId, Option<String>>);

impl NodeNames {
    /// Names for all nodes of some runs.
    pub(crate) async fn of(store: &dyn Store, runs: impl Iterator<Item = &record::Run>) -> Result<Self, Fault> {
        let mut names = Self::default();
        names.learn(store, runs).await?;
        Ok(names)
    }

    /// Looks up the nodes of some runs that were not asked for yet.
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

    /// A run as it is told.
    pub(crate) fn tell(&self, run: &record::Run) -> RunSummary {
        let name = run.owner.and_then(|owner| self.0.get(&owner.node)?.clone());
        let mut told = RunSummary::from(run);
        told.node = name.or(told.node);
        told
    }
}

/// One run as it is told.
pub(crate) async fn tell(store: &dyn Store, run: &record::Run) -> Result<RunSummary, Fault> {
    Ok(NodeNames::of(store, [run].into_iter()).await?.tell(run))
}

//! Runs as they are told: with the names of nodes, which people know, in the place of their ids, which they do not. Runs
//! of nodes that nobody knows any more keep the id.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_api::RunSummary;
use cronhold_core::NodeId;
use cronhold_core::record::{Record, RecordKey};
use cronhold_store::{Fault, Store};

use crate::find_run::ListedRun;

/// Names of nodes, as far as someone has asked for them.
#[derive(Debug, Default)]
pub(crate) struct NodeNames(BTreeMap<NodeId, Option<String>>);

impl NodeNames {
    /// Names for all nodes of some runs.
    pub(crate) async fn of(store: &dyn Store, runs: &[ListedRun]) -> Result<Self, Fault> {
        let mut names = Self::default();
        names.learn(store, runs.iter().filter_map(ListedRun::node)).await?;
        Ok(names)
    }

    /// Looks up those of some nodes that were not asked for yet.
    pub(crate) async fn learn(&mut self, store: &dyn Store, nodes: impl Iterator<Item = NodeId>) -> Result<(), Fault> {
        let nodes: BTreeSet<NodeId> = nodes.filter(|node| !self.0.contains_key(node)).collect();
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

    /// A run or a span of skips as it is told.
    pub(crate) fn tell(&self, listed: &ListedRun) -> RunSummary {
        let name = listed.node().and_then(|node| self.0.get(&node)?.clone());
        let mut told = match listed {
            ListedRun::Run(run) => RunSummary::from(&**run),
            ListedRun::SkipSpan(span) => RunSummary::from(&**span),
        };
        told.node = name.or(told.node);
        told
    }
}

/// One run or span of skips as it is told.
pub(crate) async fn tell(store: &dyn Store, listed: &ListedRun) -> Result<RunSummary, Fault> {
    Ok(NodeNames::of(store, std::slice::from_ref(listed)).await?.tell(listed))
}

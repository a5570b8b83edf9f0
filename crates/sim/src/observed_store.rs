//! The store itself, as the simulation sees it: the reference store, tapped. What a unit does is told at the very
//! moment when it takes effect, long before whoever sent it knows.

use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey};
use cronhold_store::{Fault, MemoryStore, Page, Pending, Query, Store, Unit, UnitReceipt, UnitRefusal, Wrapper};

use crate::context::SimContext;
use crate::scenario::machine_name;

/// A handle of one machine on the store that all share.
#[derive(Debug)]
pub(crate) struct ObservedStore {
    store: MemoryStore,
    context: SimContext,
    who: String,
    is_shared: bool,
}

impl ObservedStore {
    /// A handle for a machine.
    pub(crate) fn new(store: MemoryStore, context: SimContext, machine: usize, is_shared: bool) -> Self {
        Self { store, context, who: machine_name(machine), is_shared }
    }

    async fn tell_time(&self) {
        if let Ok(now) = self.store.time().await {
            self.context.store_says(now, self.is_shared);
        }
    }

    /// Tells of a beat what the store made of it: whether a node drains is not said by its beats.
    async fn tell_beat(&self, node: &NodeRecord, locks: &[(LockName, RunId)], lost: &[LockName]) {
        self.tell_time().await;
        let stored = self.store.load(&[RecordKey::Node(node.id)]).await.unwrap_or_default();
        let stored = stored.into_iter().flatten().find_map(|stored| match stored.record {
            Record::Node(node) => Some(node),
            _ => None,
        });
        let renewed: Vec<(LockName, RunId)> = locks.iter().filter(|(lock, _)| !lost.contains(lock)).cloned().collect();
        self.context.beaten(&stored.unwrap_or_else(|| Arc::new(node.clone())), &renewed);
    }
}

impl Wrapper for ObservedStore {
    fn inside(&self) -> &dyn Store {
        &self.store
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        Box::pin(async move {
            let mut results = Vec::with_capacity(units.len());
            // One by one, so that each is told before the next is compared; the store does the same.
            for unit in units {
                let result = self.store.commit(vec![unit.clone()]).await;
                if let [Ok(committed)] = &result[..] {
                    self.tell_time().await;
                    self.context.committed(&self.who, &unit, committed);
                }
                results.extend(result);
            }
            results
        })
    }

    fn beat<'a>(
        &'a self,
        node: &'a NodeRecord,
        locks: &'a [(LockName, RunId)],
    ) -> Pending<'a, Result<Vec<LockName>, Fault>> {
        Box::pin(async move {
            let lost = self.store.beat(node, locks).await?;
            self.tell_beat(node, locks, &lost).await;
            Ok(lost)
        })
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        Box::pin(async move {
            if matches!(query, Query::Nodes { .. }) {
                self.tell_time().await;
            }
            self.store.page(query, limit).await
        })
    }
}

//! The in-memory store with an observer. A unit is reported at the moment it takes effect, before its sender receives
//! the reply.

use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey};
use cronhold_store::{Fault, MemoryStore, Page, Pending, Query, Store, Unit, UnitReceipt, UnitRefusal, Wrapper};

use crate::context::SimContext;
use crate::scenario::machine_name;

/// The handle of one machine to the store of all machines.
#[derive(Debug)]
pub(crate) struct ObservedStore {
    store: MemoryStore,
    context: SimContext,
    source: String,
    is_shared: bool,
}

impl ObservedStore {
    pub(crate) fn new(store: MemoryStore, context: SimContext, machine: usize, is_shared: bool) -> Self {
        Self { store, context, source: machine_name(machine), is_shared }
    }

    async fn report_time(&self) {
        if let Ok(now) = self.store.time().await {
            self.context.set_store_time(now, self.is_shared);
        }
    }

    /// Reports a heartbeat as the store recorded it, because the store and not the heartbeat knows whether the node
    /// drains.
    async fn report_heartbeat(&self, node: &NodeRecord, locks: &[(LockName, RunId)], lost: &[(LockName, RunId)]) {
        self.report_time().await;
        let stored = self.store.load(&[RecordKey::Node(node.id)]).await.unwrap_or_default();
        let stored = stored.into_iter().flatten().find_map(|stored| match stored.record {
            Record::Node(node) => Some(node),
            _ => None,
        });
        let renewed: Vec<(LockName, RunId)> = locks.iter().filter(|renewed| !lost.contains(renewed)).cloned().collect();
        self.context.heartbeat(&stored.unwrap_or_else(|| Arc::new(node.clone())), &renewed);
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
            // One by one, so that each is reported before the next is compared. The store does the same.
            for unit in units {
                let result = self.store.commit(vec![unit.clone()]).await;
                match &result[..] {
                    [Ok(committed)] => {
                        self.report_time().await;
                        self.context.committed(&self.source, &unit, committed);
                    }
                    [Err(UnitRefusal::Conflict(_) | UnitRefusal::Held { .. })] => self.context.refused(&unit),
                    _ => {}
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
    ) -> Pending<'a, Result<Vec<(LockName, RunId)>, Fault>> {
        Box::pin(async move {
            let lost = self.store.beat(node, locks).await?;
            self.report_heartbeat(node, locks, &lost).await;
            Ok(lost)
        })
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        Box::pin(async move {
            if matches!(query, Query::Nodes { .. }) {
                self.report_time().await;
            }
            self.store.page(query, limit).await
        })
    }
}

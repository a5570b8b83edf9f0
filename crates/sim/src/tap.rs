//! The store itself, as the simulation sees it: the reference store, tapped. What a unit does is told at the very
//! moment when it takes effect, long before whoever sent it knows.

use cronhold_core::RunId;
use cronhold_core::record::{Key, LockName, Node, Stored};
use cronhold_schedule::Instant;
use cronhold_store::{
    Chunk, Committed, Fault, Health, Hint, MemoryStore, Obligation, Page, Pending, Query, Refusal, Store, Unit, Writer,
};

use crate::stage::Stage;

/// A handle of one machine on the store that all share.
#[derive(Debug)]
pub(crate) struct Tap {
    store: MemoryStore,
    stage: Stage,
    who: String,
    is_shared: bool,
}

impl Tap {
    /// A handle for somebody.
    pub(crate) fn new(store: MemoryStore, stage: Stage, who: String, is_shared: bool) -> Self {
        Self { store, stage, who, is_shared }
    }
}

impl Store for Tap {
    fn enroll(&self) -> Pending<'_, Result<Writer, Fault>> {
        self.store.enroll()
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn load<'a>(&'a self, keys: &'a [Key]) -> Pending<'a, Result<Vec<Option<Stored>>, Fault>> {
        self.store.load(keys)
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<Committed, Refusal>>> {
        Box::pin(async move {
            let mut results = Vec::with_capacity(units.len());
            // One by one, so that each is told before the next is compared; the store does the same.
            for unit in units {
                let result = self.store.commit(vec![unit.clone()]).await;
                if let [Ok(_)] = result[..] {
                    self.stage.committed(&self.who, &unit);
                }
                results.extend(result);
            }
            results
        })
    }

    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize,
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>> {
        self.store.due(after, until, limit)
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        self.store.page(query, limit)
    }

    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>> {
        self.store.append(run, from, bytes)
    }

    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>> {
        self.store.read(run, from, most)
    }

    fn beat<'a>(&'a self, node: &'a Node, locks: &'a [(LockName, RunId)]) -> Pending<'a, Result<Vec<LockName>, Fault>> {
        self.store.beat(node, locks)
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        self.store.hints()
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        self.store.time()
    }

    fn health(&self) -> Pending<'_, Health> {
        self.store.health()
    }
}

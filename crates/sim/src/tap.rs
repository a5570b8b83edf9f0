//! The store itself, as the simulation sees it: the reference store, tapped. What a unit does is told at the very
//! moment when it takes effect, long before whoever sent it knows.

use cronhold_store::{Committed, MemoryStore, Pending, Refusal, Store, Unit, Wrapper};

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

impl Wrapper for Tap {
    fn inside(&self) -> &dyn Store {
        &self.store
    }

    fn is_shared(&self) -> bool {
        self.is_shared
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
}

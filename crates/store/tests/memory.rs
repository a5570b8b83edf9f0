//! The conformance suite on the reference store.
#![cfg(feature = "conformance")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Waker};

use cronhold_core::record::{NodeRecord, RecordKey};
use cronhold_core::{NodeId, RunId};
use cronhold_schedule::{Instant, Span};
use cronhold_store::conformance::Subject;
use cronhold_store::{MemoryStore, Pending, Query, Store, StoreLimits};

/// A store whose clock the suite sets.
struct Memory {
    store: MemoryStore,
    micros: Arc<AtomicI64>,
}

impl Subject for Memory {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    fn pass(&self, span: Span) {
        let micros = i64::try_from(span.micros()).expect("cases let little time pass");
        self.micros.fetch_add(micros, Ordering::SeqCst);
    }

    fn reopen(&self) -> Arc<dyn Store> {
        self.store()
    }
}

fn memory() -> Memory {
    memory_with(StoreLimits::default())
}

fn memory_with(limits: StoreLimits) -> Memory {
    let start = Instant::parse("2026-11-15T22:00:00Z").expect("a time");
    let micros = Arc::new(AtomicI64::new(start.micros()));
    let clock = Arc::clone(&micros);
    let store = MemoryStore::with_limits(Arc::new(move || Instant::from_micros(clock.load(Ordering::SeqCst))), limits);
    Memory { store, micros }
}

cronhold_store::conformance_tests!(memory);

/// The suite on a store with limits.
mod limited {
    use super::*;

    fn memory_with_limits() -> Memory {
        memory_with(StoreLimits {
            record: Some(1_000_000),
            unit: Some(4_000_000),
            output: Some(200_000),
            outputs: Some(600),
            kept: Some(3),
        })
    }

    cronhold_store::conformance_tests!(memory_with_limits);
}

/// In the simulation, only the simulator adds delays, so no request of the store may wait.
#[test]
fn requests_complete_at_the_first_poll() {
    fn poll<T>(mut pending: Pending<'_, T>) -> bool {
        pending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }
    let (store, id) = (memory().store, RunId::from_random(Instant::EPOCH, [0; 10]));
    let node = NodeRecord::new(NodeId::from_bits(1), "n", 1, Instant::EPOCH);
    assert!(poll(store.enroll()));
    assert!(poll(store.load(&[RecordKey::Pause])));
    assert!(poll(store.commit(Vec::new())));
    assert!(poll(store.due(None, Instant::EPOCH, 1)));
    assert!(poll(store.page(&Query::Nodes { after: None }, 1)));
    assert!(poll(store.append(id, 0, b"x")));
    assert!(poll(store.read(id, 0, 1)));
    assert!(poll(store.time()));
    assert!(poll(store.health()));
    let other = store.clone();
    assert!(!poll(other.hints()), "there are no changes");
    assert!(poll(store.beat(&node, &[])));
    assert!(poll(other.hints()), "there is a new node");
    assert!(poll(store.beat(&node, &[])));
    assert!(!poll(other.hints()), "a heartbeat without changes is not published");
}

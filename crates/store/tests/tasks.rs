//! The conformance suite for tasks on the reference store.
#![cfg(feature = "conformance")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cronhold_schedule::{Instant, Span};
use cronhold_store::conformance::tasks::TaskSubject;
use cronhold_store::tasks::{MemoryTaskStore, TaskStore};

/// A store whose clock the suite sets.
struct TaskMemory {
    store: MemoryTaskStore,
    micros: Arc<AtomicI64>,
}

impl TaskSubject for TaskMemory {
    fn store(&self) -> Arc<dyn TaskStore> {
        Arc::new(self.store.clone())
    }

    fn pass(&self, span: Span) {
        let micros = i64::try_from(span.micros()).expect("cases let little time pass");
        self.micros.fetch_add(micros, Ordering::SeqCst);
    }

    fn reopen(&self) -> Arc<dyn TaskStore> {
        self.store()
    }
}

fn memory() -> TaskMemory {
    let start = Instant::parse("2026-11-15T22:00:00Z").expect("a time");
    let micros = Arc::new(AtomicI64::new(start.micros()));
    let clock = Arc::clone(&micros);
    let store = MemoryTaskStore::new(Arc::new(move || Instant::from_micros(clock.load(Ordering::SeqCst))));
    TaskMemory { store, micros }
}

cronhold_store::task_conformance_tests!(memory);

//! The conformance suite on files.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::Store;
use cronhold_store::conformance::Subject;
use cronhold_store_sqlite::{Options, SqliteStore};

use crate::places::Place;

struct File {
    place: Place,
    micros: Arc<AtomicI64>,
    store: Mutex<Option<SqliteStore>>,
}

impl File {
    fn options(&self) -> Options {
        let micros = Arc::clone(&self.micros);
        let clock = Arc::new(move || Instant::from_micros(micros.load(Ordering::Relaxed)));
        Options { clock, zones: Arc::new(ZoneRegistry::bundled()), size_max: None }
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(self.place.database(), self.options()).expect("it can be opened")
    }
}

impl Subject for File {
    fn store(&self) -> Arc<dyn Store> {
        let mut store = self.store.lock().expect("not poisoned");
        Arc::new(store.get_or_insert_with(|| self.open()).clone())
    }

    fn pass(&self, span: Span) {
        let micros = i64::try_from(span.micros()).expect("a short span");
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn reopen(&self) -> Arc<dyn Store> {
        *self.store.lock().expect("not poisoned") = None;
        self.store()
    }
}

fn file() -> File {
    let micros = Arc::new(AtomicI64::new(Instant::from_secs(1_800_000_000).micros()));
    File { place: Place::new(), micros, store: Mutex::default() }
}

cronhold_store::conformance_tests!(file);

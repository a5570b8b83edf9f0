//! The stores under test. Each function is called with a new store of each kind.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::ClockFn;
use cronhold_store::tasks::{MemoryTaskStore, TaskStore};
use cronhold_store_redis::testing::RedisServer;
use cronhold_store_redis::{RedisStore, RedisUrl};
use cronhold_store_sqlite::{Options, SqliteStore};

/// A clock that tests advance.
#[derive(Debug, Clone)]
pub(crate) struct TestClock(Arc<AtomicI64>);

impl TestClock {
    pub(crate) fn pass(&self, span: Span) {
        self.0.fetch_add(i64::try_from(span.micros()).expect("a short span"), Ordering::SeqCst);
    }

    fn to_fn(&self) -> ClockFn {
        let micros = Arc::clone(&self.0);
        Arc::new(move || Instant::from_micros(micros.load(Ordering::SeqCst)))
    }
}

/// Calls a test with each store.
pub(crate) fn on_each_store(test: impl Fn(Arc<dyn TaskStore>, &TestClock)) {
    let clock = || TestClock(Arc::new(AtomicI64::new(Instant::from_secs(1_800_000_000).micros())));
    let memory = clock();
    test(Arc::new(MemoryTaskStore::new(memory.to_fn())), &memory);

    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("worker-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a directory can be created");
    let file = clock();
    let options = Options { clock: file.to_fn(), zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
    let store = SqliteStore::open(folder.join("cronhold.db"), options).expect("it can be opened");
    test(Arc::new(store.tasks()), &file);
    drop(store);
    on_redis(&test);
    // A leftover directory does no harm: no other test uses its name.
    let _ = fs::remove_dir_all(&folder);
}

/// Calls a test with a store on a new server.
fn on_redis(test: &impl Fn(Arc<dyn TaskStore>, &TestClock)) {
    let server = RedisServer::start();
    let url = RedisUrl::parse(&server.url_with("timeout=30s")).expect("a URL");
    let zones = Arc::new(ZoneRegistry::bundled());
    let options = cronhold_store_redis::Options { zones, memory: None, accept_loss: false };
    let store = RedisStore::open(&url, options).expect("it can be opened");
    let clock = TestClock(Arc::new(AtomicI64::new(Instant::from_secs(1_800_000_000).micros())));
    test(Arc::new(store.tasks_with_clock(clock.to_fn())), &clock);
}

//! The conformance suite for tasks on a real server, the keys there, and what Sidekiq does with them.

mod failures;
mod fixture;
mod keys;
mod sidekiq;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cronhold_schedule::{Instant, Span};
use cronhold_store::conformance::tasks::TaskSubject;
use cronhold_store::tasks::TaskStore;
use cronhold_store_redis::testing::RedisServer;
use fixture::open;

struct TasksOnRedis {
    server: RedisServer,
    micros: Arc<AtomicI64>,
}

impl TaskSubject for TasksOnRedis {
    /// Each handle has connections of its own, as that of another process has.
    fn store(&self) -> Arc<dyn TaskStore> {
        let micros = Arc::clone(&self.micros);
        let clock = Arc::new(move || Instant::from_micros(micros.load(Ordering::Relaxed)));
        Arc::new(open(&self.server, "").tasks_with_clock(clock))
    }

    fn pass(&self, span: Span) {
        let micros = i64::try_from(span.micros()).expect("a short span");
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn reopen(&self) -> Arc<dyn TaskStore> {
        self.store()
    }
}

fn tasks_on_redis() -> TasksOnRedis {
    let micros = Arc::new(AtomicI64::new(Instant::from_secs(1_800_000_000).micros()));
    TasksOnRedis { server: RedisServer::start(), micros }
}

cronhold_store::task_conformance_tests!(tasks_on_redis);

//! The conformance suite on a real server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cronhold_core::record::RecordKey;
use cronhold_schedule::{Span, ZoneRegistry};
use cronhold_store::Store;
use cronhold_store::conformance::Subject;
use cronhold_store_redis::testing::RedisServer;
use cronhold_store_redis::{Options, RedisStore, RedisUrl};

struct OnRedis {
    server: RedisServer,
    store: Mutex<Option<RedisStore>>,
}

impl OnRedis {
    fn open(&self) -> RedisStore {
        let url = RedisUrl::parse(&self.server.url()).expect("a URL");
        let options = Options { zones: Arc::new(ZoneRegistry::bundled()), memory: None, accept_loss: false };
        RedisStore::open(&url, options).expect("it can be opened")
    }
}

impl Subject for OnRedis {
    fn store(&self) -> Arc<dyn Store> {
        let mut store = self.store.lock().expect("not poisoned");
        Arc::new(store.get_or_insert_with(|| self.open()).clone())
    }

    fn pass(&self, span: Span) {
        // The server has its own clock, so the test waits.
        let (_sender, nothing) = std::sync::mpsc::channel::<()>();
        let _ = nothing.recv_timeout(Duration::from_micros(span.micros()));
    }

    fn reopen(&self) -> Arc<dyn Store> {
        *self.store.lock().expect("not poisoned") = None;
        self.store()
    }

    fn damage(&self, key: &RecordKey) -> bool {
        let (table, first, second) = match key {
            RecordKey::Pause => ("pause", "all".to_owned(), String::new()),
            RecordKey::Job(job) => ("jobs", job.to_string(), String::new()),
            RecordKey::JobState(job) => ("job_states", job.to_string(), String::new()),
            RecordKey::Cursor(job, schedule) => ("cursors", job.to_string(), schedule.to_string()),
            RecordKey::Backlog(job, schedule) => ("backlogs", job.to_string(), schedule.to_string()),
            RecordKey::Run(run) => ("runs", run.to_string(), String::new()),
            other => panic!("{other} is not damaged by any case"),
        };
        // Keeps the first line, and lets the rest be neither JSON nor UTF-8.
        let script = "local field = ARGV[1] .. (ARGV[2] == '' and '' or '\\0' .. ARGV[2]) \
            local value = redis.call('HGET', KEYS[1], field) \
            return redis.call('HSET', KEYS[1], field, string.match(value, '^[^\\n]*\\n') .. '{\\255')";
        let hash = format!("{{cronken}}:cronhold:{table}");
        assert_eq!(self.server.cli(&["EVAL", script, "1", &hash, &first, &second]), "0", "{key}");
        true
    }
}

fn on_redis() -> OnRedis {
    OnRedis { server: RedisServer::start(), store: Mutex::default() }
}

cronhold_store::conformance_tests!(on_redis);

//! The conformance suite on files.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use cronhold_core::record::RecordKey;
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::Store;
use cronhold_store::conformance::Subject;
use cronhold_store_sqlite::{Options, SqliteStore};
use rusqlite::Connection;

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

    fn damage(&self, key: &RecordKey) -> bool {
        let (table, column, names) = match key {
            RecordKey::Pause => ("pause", "why", Vec::new()),
            RecordKey::Job(job) => ("jobs", "definition", vec![("id", job.to_string())]),
            RecordKey::JobState(job) => ("job_states", "active", vec![("job", job.to_string())]),
            RecordKey::Cursor(job, schedule) => {
                ("cursors", "zones", vec![("job", job.to_string()), ("schedule", schedule.to_string())])
            }
            RecordKey::Backlog(job, schedule) => {
                ("backlogs", "later", vec![("job", job.to_string()), ("schedule", schedule.to_string())])
            }
            RecordKey::Run(run) => ("runs", "log", vec![("id", run.to_string())]),
            other => panic!("{other} is not damaged by any case"),
        };
        let clause: Vec<String> = names.iter().map(|(column, value)| format!("{column} = '{value}'")).collect();
        let clause = if clause.is_empty() { "1".to_owned() } else { clause.join(" AND ") };
        let someone = Connection::open(self.place.database()).expect("a shell");
        // No text in UTF-8 has this byte.
        let sql = format!("UPDATE {table} SET {column} = CAST(x'7bff' AS TEXT) WHERE {clause}");
        assert_eq!(someone.execute(&sql, []).expect("a change"), 1, "{key}");
        true
    }
}

fn file() -> File {
    let micros = Arc::new(AtomicI64::new(Instant::from_secs(1_800_000_000).micros()));
    File { place: Place::new(), micros, store: Mutex::default() }
}

cronhold_store::conformance_tests!(file);

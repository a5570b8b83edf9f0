//! Directories of several nodes on one store: which node applies them, and which takes over.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cronhold_cli::LogFormat;
use cronhold_core::record::{LockName, Record, RecordKey};
use cronhold_core::{DecisionContext, NodeId};
use cronhold_engine::{Engine, EngineEvent, EngineObserver, MachineClock, NoPrograms, NodeHandle, NodePorts, Options};
use cronhold_jobfile::directory::{JobFileCache, JobsRoot};
use cronhold_schedule::{Span, Zone, ZoneRegistry};
use cronhold_store::{MemoryStore, Query, Store};
use tokio::task::JoinHandle;
use tracing::Level;

use super::{ApplyResult, JobDirectories};
use crate::chance::SystemEntropy;
use crate::clock::{self, SystemClock};
use crate::log::{Log, LogOptions};

/// Longer than a lock lasts without a renewal.
const LONG: Span = Span::from_secs(31);

/// A temporary directory that is removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cronhold-loader-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    /// A job file whose job has a description.
    fn put(&self, file: &str, description: &str) {
        let file = self.0.join(file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        let yaml = format!("description: {description}\nprogram: {{noop: true}}\nschedule: triggered\n");
        fs::write(file, yaml).expect("written");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Ignores all events.
#[derive(Debug)]
struct NoObserver;

impl EngineObserver for NoObserver {
    fn on_event(&self, _: &EngineEvent<'_>) {}
}

/// Keeps what is written.
#[derive(Debug, Default, Clone)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A store whose clock can be set forward.
struct SharedStore {
    store: MemoryStore,
    ahead: Arc<AtomicU64>,
}

impl SharedStore {
    fn new() -> Self {
        let ahead = Arc::new(AtomicU64::new(0));
        let by = Arc::clone(&ahead);
        let now = move || clock::now().plus(Span::from_micros(by.load(Ordering::Relaxed)));
        Self { store: MemoryStore::new(Arc::new(now)), ahead }
    }

    fn advance(&self, span: Span) {
        self.ahead.fetch_add(span.micros(), Ordering::Relaxed);
    }

    /// The description of a stored job.
    async fn description(&self, id: &str) -> Option<String> {
        let page = self.store.page(&Query::Jobs { after: None }, 100).await.expect("the store works");
        page.records.into_iter().find_map(|stored| match stored.record {
            Record::Job(job) if job.id.as_str() == id => Some(job.job.description.clone()),
            _ => None,
        })
    }

    async fn is_held(&self, lock: &str) -> bool {
        let key = RecordKey::Lock(LockName::parse(lock).expect("a name"));
        self.store.load(&[key]).await.expect("the store works")[0].is_some()
    }
}

/// A node with directories.
struct Member {
    handle: NodeHandle,
    store: Arc<dyn Store>,
    clock: Arc<dyn MachineClock>,
    files: JobDirectories,
    engine: JoinHandle<()>,
    log: Log,
    buffer: LogBuffer,
}

impl Member {
    async fn start(number: u128, shared: &SharedStore, roots: &[(Option<&str>, &Path)]) -> Self {
        let store: Arc<dyn Store> = Arc::new(shared.store.clone());
        let clock: Arc<dyn MachineClock> = Arc::new(SystemClock::new().expect("a clock"));
        let buffer = LogBuffer::default();
        let log = Log::new(LogOptions::new(LogFormat::Json, Level::INFO), buffer.clone());
        let world = DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "test".into(), Zone::utc());
        let root = |(prefix, path): &(Option<&str>, &Path)| JobsRoot {
            path: path.to_path_buf(),
            prefix: prefix.map(str::to_owned),
        };
        let cache = JobFileCache::new(std::env::temp_dir().join("cronhold-no-cache"), "test".to_owned());
        let (node, roots) = (NodeId::from_bits(number), roots.iter().map(root).collect());
        let files = JobDirectories::load(node, (roots, cache), world, &*store, clock::now(), &log)
            .await
            .expect("the store works");
        let ports = NodePorts {
            clock: Arc::clone(&clock),
            entropy: Arc::new(SystemEntropy),
            store: Arc::clone(&store),
            programs: Arc::new(NoPrograms),
            feed: Arc::new(NoObserver),
        };
        let options = Options::new(node, format!("node {number}"));
        let (engine, handle) = Engine::new(ports, options, files.world().clone());
        let engine = tokio::spawn(async move { engine.run().await.expect("the store works") });
        Self { handle, store, clock, files, engine, log, buffer }
    }

    async fn acquire_locks(&mut self) -> bool {
        self.files.acquire_locks(&self.handle, &*self.store, &*self.clock).await
    }

    /// Applies all files, as at a start.
    async fn apply(&mut self) -> ApplyResult {
        self.files.refresh(clock::now());
        self.files.check(clock::now());
        let plan = self.files.first_plan();
        self.files.apply(plan, &self.handle, &*self.clock).await
    }

    /// Stops as a daemon does.
    async fn stop(self) {
        let loaders = self.files.loaders();
        tokio::join!(loaders.release_all(&self.handle), self.handle.stop());
        self.engine.await.expect("no panic");
    }

    /// The names of all logged events about loader locks.
    fn loader_events(&self) -> Vec<String> {
        self.log.end();
        let buffer = self.buffer.0.lock().expect("no panic");
        let events = buffer.split(|byte| *byte == b'\n').filter_map(|line| {
            let line: serde_json::Value = serde_json::from_slice(line).ok()?;
            Some(line["event"].as_str()?.to_owned())
        });
        events.filter(|event| event.starts_with("loader_")).collect()
    }
}

fn in_executor(test: impl AsyncFnOnce()) {
    let executor = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("an executor");
    executor.block_on(test());
}

#[test]
fn one_node_applies_a_directory_and_another_takes_over_when_it_is_lost() {
    in_executor(async || {
        let (scratch, shared) = (Scratch::new("lost"), SharedStore::new());
        scratch.put("one/a.yaml", "of the first");
        scratch.put("two/a.yaml", "of the second");
        let mut one = Member::start(1, &shared, &[(Some("ops"), &scratch.0.join("one"))]).await;
        let mut two = Member::start(2, &shared, &[(Some("ops"), &scratch.0.join("two"))]).await;
        assert!(one.acquire_locks().await, "the lock is free");
        assert_eq!(one.apply().await.summary(0, 0), "1 job, 1 new or changed");
        for _ in 0..2 {
            assert!(!two.acquire_locks().await, "the first node holds the lock");
            assert_eq!(two.apply().await.summary(0, 0), "1 job, 1 left to another node");
        }
        assert!(!one.acquire_locks().await, "it held the lock before");
        assert_eq!(shared.description("ops/a").await.as_deref(), Some("of the first"));

        // The first node no longer renews its lock.
        one.engine.abort();
        assert!(!two.acquire_locks().await, "the lock has not expired");
        shared.advance(LONG);
        assert!(two.acquire_locks().await, "the lock has expired");
        assert_eq!(two.apply().await.summary(0, 0), "1 job, 1 new or changed");
        assert_eq!(shared.description("ops/a").await.as_deref(), Some("of the second"));
        assert!(!two.acquire_locks().await, "it held the lock before");
        assert_eq!(two.loader_events(), ["loader_elsewhere", "loader_taken_over"]);
    });
}

/// A released lock is free at once. The next holder reads the stored jobs, because other nodes have changed them.
#[test]
fn stopping_node_releases_its_loader_lock() {
    in_executor(async || {
        let (scratch, shared) = (Scratch::new("stops"), SharedStore::new());
        scratch.put("one/a.yaml", "of the first");
        scratch.put("one/b.yaml", "of the first");
        scratch.put("two/a.yaml", "of the second");
        let mut one = Member::start(1, &shared, &[(None, &scratch.0.join("one"))]).await;
        let mut two = Member::start(2, &shared, &[(None, &scratch.0.join("two"))]).await;
        assert!(one.acquire_locks().await && !two.acquire_locks().await);
        one.apply().await;
        assert!(shared.is_held("#cronhold/loader/").await);
        one.stop().await;
        assert!(!shared.is_held("#cronhold/loader/").await);
        assert!(two.acquire_locks().await);
        assert_eq!(two.apply().await.summary(0, 0), "1 job, 1 new or changed, 1 removed");
        assert_eq!(shared.description("b").await, None);
    });
}

/// Another node has held the lock in between, so what this node remembers of the store is outdated.
#[test]
fn reacquired_lock_applies_all_files_again() {
    in_executor(async || {
        let (scratch, shared) = (Scratch::new("back"), SharedStore::new());
        scratch.put("one/a.yaml", "of the first");
        scratch.put("two/a.yaml", "of the second");
        let mut one = Member::start(1, &shared, &[(None, &scratch.0.join("one"))]).await;
        assert!(one.acquire_locks().await);
        one.apply().await;
        one.files.loaders().release_all(&one.handle).await;
        let mut two = Member::start(2, &shared, &[(None, &scratch.0.join("two"))]).await;
        assert!(two.acquire_locks().await);
        two.apply().await;
        two.stop().await;
        assert_eq!(shared.description("a").await.as_deref(), Some("of the second"));
        assert!(one.acquire_locks().await, "the fence has changed");
        one.apply().await;
        assert_eq!(shared.description("a").await.as_deref(), Some("of the first"));
    });
}

#[test]
fn different_prefixes_have_independent_locks() {
    in_executor(async || {
        let (scratch, shared) = (Scratch::new("prefixes"), SharedStore::new());
        scratch.put("ops/a.yaml", "of the first");
        scratch.put("web/a.yaml", "of the second");
        let (ops, web) = (scratch.0.join("ops"), scratch.0.join("web"));
        let mut one = Member::start(1, &shared, &[(Some("ops"), &ops)]).await;
        let mut two = Member::start(2, &shared, &[(Some("ops"), &ops), (Some("web"), &web)]).await;
        assert!(one.acquire_locks().await);
        assert!(two.acquire_locks().await, "the lock of the other prefix is free");
        let applied = two.apply().await;
        assert_eq!(applied.summary(0, 0), "2 jobs, 1 new or changed, 1 left to another node");
        assert_eq!(two.files.left_to_others(), ["jobs below ops/ are loaded by another node"]);
        let stored = (shared.description("ops/a").await, shared.description("web/a").await);
        assert_eq!(stored, (None, Some("of the second".to_owned())));
    });
}

//! Directories of several nodes on one store: who applies them, and who takes over.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cronhold_cli::LogFormat;
use cronhold_core::record::{LockName, Record, RecordKey};
use cronhold_core::{DecisionContext, NodeId};
use cronhold_engine::{Engine, EngineEvent, EngineObserver, MachineClock, NoPrograms, NodeHandle, NodePorts, Options};
use cronhold_jobfile::directory::JobsRoot;
use cronhold_schedule::{Span, Zone, ZoneRegistry};
use cronhold_store::{MemoryStore, Query, Store};
use tokio::task::JoinHandle;
use tracing::Level;

use super::{ApplyResult, JobDirectories};
use crate::chance::SystemEntropy;
use crate::clock::{self, SystemClock};
use crate::log::{Log, LogOptions};

/// Longer than a lock lasts whose holder is not heard of.
const LONG: Span = Span::from_secs(31);

/// A directory that goes with this.
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

/// Nobody who wants to know.
#[derive(Debug)]
struct Nobody;

impl EngineObserver for Nobody {
    fn on_event(&self, _: &EngineEvent<'_>) {}
}

/// Keeps what is written.
#[derive(Debug, Default, Clone)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A store whose time can be moved on.
struct Shared {
    store: MemoryStore,
    ahead: Arc<AtomicU64>,
}

impl Shared {
    fn new() -> Self {
        let ahead = Arc::new(AtomicU64::new(0));
        let by = Arc::clone(&ahead);
        let now = move || clock::now().plus(Span::from_micros(by.load(Ordering::Relaxed)));
        Self { store: MemoryStore::new(Arc::new(now)), ahead }
    }

    fn pass(&self, span: Span) {
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
    paper: Paper,
}

impl Member {
    async fn start(number: u128, shared: &Shared, roots: &[(Option<&str>, &Path)]) -> Self {
        let store: Arc<dyn Store> = Arc::new(shared.store.clone());
        let clock: Arc<dyn MachineClock> = Arc::new(SystemClock::new().expect("a clock"));
        let paper = Paper::default();
        let log = Log::new(LogOptions::new(LogFormat::Json, Level::INFO), paper.clone());
        let world = DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "test".into(), Zone::utc());
        let root = |(prefix, path): &(Option<&str>, &Path)| JobsRoot {
            path: path.to_path_buf(),
            prefix: prefix.map(str::to_owned),
        };
        let (node, roots) = (NodeId::from_bits(number), roots.iter().map(root).collect());
        let files =
            JobDirectories::load(node, roots, world, &*store, clock::now(), &log).await.expect("the store works");
        let ports = NodePorts {
            clock: Arc::clone(&clock),
            entropy: Arc::new(SystemEntropy),
            store: Arc::clone(&store),
            programs: Arc::new(NoPrograms),
            feed: Arc::new(Nobody),
        };
        let options = Options::new(node, format!("node {number}"));
        let (engine, handle) = Engine::new(ports, options, files.world().clone());
        let engine = tokio::spawn(async move { engine.run().await.expect("the store works") });
        Self { handle, store, clock, files, engine, log, paper }
    }

    async fn hold(&mut self) -> bool {
        self.files.hold(&self.handle, &*self.store, &*self.clock).await
    }

    /// Does what the files say, as at a start.
    async fn apply(&mut self) -> ApplyResult {
        self.files.refresh(clock::now());
        self.files.check(clock::now());
        let plan = self.files.first_plan();
        self.files.apply(plan, &self.handle, &*self.clock).await
    }

    /// Stops as a daemon does.
    async fn stop(self) {
        let loaders = self.files.loaders();
        tokio::join!(loaders.let_go(&self.handle), self.handle.stop());
        self.engine.await.expect("it stops");
    }

    /// The names of all logged events about who loads what.
    fn loader_events(&self) -> Vec<String> {
        self.log.end();
        let paper = self.paper.0.lock().expect("no panic");
        let events = paper.split(|byte| *byte == b'\n').filter_map(|line| {
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
        let (scratch, shared) = (Scratch::new("lost"), Shared::new());
        scratch.put("one/a.yaml", "of the first");
        scratch.put("two/a.yaml", "of the second");
        let mut one = Member::start(1, &shared, &[(Some("ops"), &scratch.0.join("one"))]).await;
        let mut two = Member::start(2, &shared, &[(Some("ops"), &scratch.0.join("two"))]).await;
        assert!(one.hold().await, "it is free");
        assert_eq!(one.apply().await.words(0, 0), "1 job, 1 new or changed");
        for _ in 0..2 {
            assert!(!two.hold().await, "the first has it");
            assert_eq!(two.apply().await.words(0, 0), "1 job, 1 left to another node");
        }
        assert!(!one.hold().await, "it has it already");
        assert_eq!(shared.description("ops/a").await.as_deref(), Some("of the first"));

        // From here on nothing is heard of the first.
        one.engine.abort();
        assert!(!two.hold().await, "it has not run out");
        shared.pass(LONG);
        assert!(two.hold().await, "it has run out");
        assert_eq!(two.apply().await.words(0, 0), "1 job, 1 new or changed");
        assert_eq!(shared.description("ops/a").await.as_deref(), Some("of the second"));
        assert!(!two.hold().await, "it has it already");
        assert_eq!(two.loader_events(), ["loader_elsewhere", "loader_taken_over"]);
    });
}

/// A lock that is let go is free at once. Whoever gets it looks at what is stored, because others have changed it.
#[test]
fn a_node_that_stops_lets_go() {
    in_executor(async || {
        let (scratch, shared) = (Scratch::new("stops"), Shared::new());
        scratch.put("one/a.yaml", "of the first");
        scratch.put("one/b.yaml", "of the first");
        scratch.put("two/a.yaml", "of the second");
        let mut one = Member::start(1, &shared, &[(None, &scratch.0.join("one"))]).await;
        let mut two = Member::start(2, &shared, &[(None, &scratch.0.join("two"))]).await;
        assert!(one.hold().await && !two.hold().await);
        one.apply().await;
        assert!(shared.is_held("#cronhold/loader/").await);
        one.stop().await;
        assert!(!shared.is_held("#cronhold/loader/").await);
        assert!(two.hold().await);
        assert_eq!(two.apply().await.words(0, 0), "1 job, 1 new or changed, 1 removed");
        assert_eq!(shared.description("b").await, None);
    });
}

/// Somebody has had the lock while this node did not look: what it remembers of the store is old.
#[test]
fn a_lock_that_came_back_is_a_new_one() {
    in_executor(async || {
        let (scratch, shared) = (Scratch::new("back"), Shared::new());
        scratch.put("one/a.yaml", "of the first");
        scratch.put("two/a.yaml", "of the second");
        let mut one = Member::start(1, &shared, &[(None, &scratch.0.join("one"))]).await;
        assert!(one.hold().await);
        one.apply().await;
        one.files.loaders().let_go(&one.handle).await;
        let mut two = Member::start(2, &shared, &[(None, &scratch.0.join("two"))]).await;
        assert!(two.hold().await);
        two.apply().await;
        two.stop().await;
        assert_eq!(shared.description("a").await.as_deref(), Some("of the second"));
        assert!(one.hold().await, "under another fence");
        one.apply().await;
        assert_eq!(shared.description("a").await.as_deref(), Some("of the first"));
    });
}

#[test]
fn directories_with_different_prefixes_have_nothing_to_do_with_each_other() {
    in_executor(async || {
        let (scratch, shared) = (Scratch::new("prefixes"), Shared::new());
        scratch.put("ops/a.yaml", "of the first");
        scratch.put("web/a.yaml", "of the second");
        let (ops, web) = (scratch.0.join("ops"), scratch.0.join("web"));
        let mut one = Member::start(1, &shared, &[(Some("ops"), &ops)]).await;
        let mut two = Member::start(2, &shared, &[(Some("ops"), &ops), (Some("web"), &web)]).await;
        assert!(one.hold().await);
        assert!(two.hold().await, "the other one is free");
        let applied = two.apply().await;
        assert_eq!(applied.words(0, 0), "2 jobs, 1 new or changed, 1 left to another node");
        assert_eq!(two.files.left_to_others(), ["jobs below ops/ are loaded by another node"]);
        let stored = (shared.description("ops/a").await, shared.description("web/a").await);
        assert_eq!(stored, (None, Some("of the second".to_owned())));
    });
}

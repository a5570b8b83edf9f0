//! The daemon: connects all parts, runs the node until a signal arrives, and stops in order.

use std::convert::Infallible;
use std::error::Error;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use cronhold_cli::{CliError, ExitStatus, UpArgs, counted};
use cronhold_core::{DecisionContext, NodeId};
use cronhold_cronken::ReconcileRequests;
use cronhold_engine::{
    Engine, EngineError, EngineEvent, EngineObserver, EntropySource, MachineClock, NodeHandle, NodePorts, Options,
};
use cronhold_jobfile::directory::JobFileCache;
use cronhold_keeper::client::{ClientOptions, KeeperClient};
use cronhold_programs::host_env::HostEnv;
use cronhold_programs::output::OutputShipper;
use cronhold_programs::{KEEPER_PENDING, LocalRunner, MailSettings, MailSettingsError};
use cronhold_schedule::Span;
use cronhold_store::{Store, StoreLimits};
use cronhold_wiring::StoreContext;
use tracing::{Level, info, warn};

use crate::await_store::await_store;
use crate::chance::SystemEntropy;
use crate::channels::ChannelParts;
use crate::clock::{self, SystemClock};
use crate::http::{self, BoundServer, RunningServer, ServerParts};
use crate::job_defaults;
use crate::job_files::{self, JobDirectories, LoaderLocks};
use crate::log::{self, Log, LogOptions};
use crate::memory::return_freed_memory;
use crate::node_name;
use crate::peers::CronkenThread;
use crate::signals::{SignalListener, SignalRequest};
use crate::state_dir::{EnvPaths, StateDir};
use crate::zone_rules::ZoneRules;

/// The version of the daemon, and of the keepers that it starts.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Variables of the daemon that its keeper inherits.
const KEEPER_VARIABLES: [&str; 4] = ["PATH", "LANG", "TZ", "RUST_BACKTRACE"];
/// The URL of the mail server for actions, and the address that mails come from.
const SMTP_VARIABLE: &str = "CRONHOLD_SMTP";
const MAIL_FROM_VARIABLE: &str = "CRONHOLD_MAIL_FROM";
const MAIL_HINT: &str =
    "such as CRONHOLD_SMTP=smtp://user:password@mail.example.org:587 and CRONHOLD_MAIL_FROM=cron@example.org";
/// The default total size of stored outputs in bytes: for a store on disk, and for a store that nodes share, which may keep
/// everything in memory.
const OUTPUTS_MAX: u64 = 10 << 30;
const SHARED_OUTPUTS_MAX: u64 = 256 << 20;
/// How long a stopping node may take for its last commits. After that the daemon exits, which loses nothing.
const STOP_WAIT: Span = Span::from_secs(10);

/// What the daemon takes from its process.
#[derive(Debug)]
pub struct DaemonEnv {
    /// Directories and URLs that the environment names.
    pub places: EnvPaths,
    /// The time zone database.
    pub zone_rules: ZoneRules,
    /// The environment variables.
    pub env: Vec<(String, String)>,
    /// The path of this program, which is also the keeper.
    pub program: PathBuf,
    /// The value of `CRONHOLD_LOG`. Options on the command line override it.
    pub log_filter: Option<String>,
    /// Whether the log goes to a terminal that shows colours.
    pub colours: bool,
}

impl DaemonEnv {
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<&str> {
        self.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// All parts of a running node.
struct NodeParts {
    ports: NodePorts,
    options: Options,
    programs: Arc<LocalRunner>,
    /// The thread that stores the output of programs; it ends when this is dropped.
    outputs: OutputShipper,
    /// The connection to the keeper; it ends when this is dropped.
    client: KeeperClient,
    /// The job files, with zones and calendars.
    files: JobDirectories,
    /// The HTTP server, if there is one, and the events that it streams.
    front: Option<BoundServer>,
    feed: Arc<cronhold_server::FeedBuffer>,
    /// Requests to reconcile jobs with the definitions shared with Cronken.
    reconciling: Arc<ReconcileRequests>,
    /// What connects jobs with tasks; `None` if the store does not keep tasks.
    channels: Option<ChannelParts>,
}

/// Runs the daemon until a signal stops it.
pub fn up(up: &UpArgs, setting: &DaemonEnv) -> Result<ExitStatus, CliError> {
    let zones = &setting.zone_rules.zones;
    let zone = zones.get(&up.timezone).map_err(|error| CliError::flag("--timezone", error))?;
    let home = StateDir::choose(up.data.as_deref(), &setting.places)?;
    let defaults = job_defaults::read(up.defaults.as_deref(), setting.variable(job_defaults::VARIABLE), zones)?;
    let url = setting.places.named_store(up.store.as_deref())?.unwrap_or_else(|| home.store_url());
    let roots = job_files::roots(&up.jobs)?;
    let listen = http::listen(up)?;
    let labels = up.labels()?;
    let log_options = LogOptions::choose(&up.log, short_form(up), setting.log_filter.as_deref())?;
    let log_options = log_options.with_colours(setting.colours);
    home.create()?;
    // Held until the daemon exits.
    let _lock = url.is_shared().then(|| home.lock()).transpose()?;
    let node = home.node_id(|| NodeId::from_bits(SystemEntropy.bits()))?;
    let memory = url.is_shared().then(|| home.store_state_file(&url));
    let around = StoreContext {
        memory,
        accept_loss: up.accept_loss,
        ..StoreContext::new(Arc::new(clock::now), Arc::clone(zones))
    };
    // Before the store is opened, so that the log contains its events.
    let log = Log::new(log_options, io::stderr());
    log.install();
    let store = cronhold_wiring::open(&url, around).map_err(|error| store_failure(&error))?;
    let version = Arc::clone(&setting.zone_rules.version);
    let world = DecisionContext::new(Arc::clone(zones), version, zone);
    let world = DecisionContext {
        labels: Arc::new(labels),
        lease: url.lease().unwrap_or(world.lease),
        defaults: Arc::new(defaults),
        ..world
    };
    let name = node_name::expand(up.name.as_deref());
    let outputs_max = up.outputs_max.unwrap_or(if url.is_shared() { SHARED_OUTPUTS_MAX } else { OUTPUTS_MAX });
    let options = Options { force: up.force, outputs_max: Some(outputs_max), ..Options::new(node, name) };
    info!(event = "starting", node = %node, name = options.name, store = %url, version = VERSION,
        "node {} ({node}), store {url}", options.name);
    let limits = store.limits();
    if limits != StoreLimits::default() {
        info!(event = "store_limits", %limits, "limits of the store: {limits}");
    }
    let rules = &setting.zone_rules;
    info!(event = "zone_data_loaded", version = %rules.version, origin = %rules.origin,
        "zone data {} from {}", rules.version, rules.origin);

    let executor = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let executor = executor.map_err(|error| cannot_start(&error))?;
    let outcome = executor.block_on(async {
        // From here on a signal waits until the daemon can handle it.
        let mut signals = SignalListener::new().map_err(|error| cannot_start(&error))?;
        if !await_node(&*store, &mut signals, &options).await? {
            return Ok(ExitStatus::Done);
        }
        // After the store: if another daemon runs, the error of the store names it, and an address in use does not.
        let front = listen.map(|listen| BoundServer::bind(&listen, up, &home)).transpose()?;
        let cache = JobFileCache::new(home.job_file_cache(), cache_tag(setting));
        let files = JobDirectories::load(node, (roots, cache), world, &*store, clock::now(), &log).await;
        let files = files.map_err(|fault| store_failure(&fault))?;
        let parts = assemble(Arc::clone(&store), options, files, front, (setting, &up.pass_env), &home, &log)?;
        let outcome = live(parts, signals, &home, &log).await;
        node_name::unregister(&*store).await;
        outcome
    });
    log.end();
    outcome
}

/// Waits until the store can be used and the node has its name. Returns false if a signal stops the daemon before that.
async fn await_node(store: &dyn Store, signals: &mut SignalListener, options: &Options) -> Result<bool, CliError> {
    let ready = async {
        await_store(store).await?;
        node_name::register(store, &options.name, options.node, options.force).await
    };
    tokio::select! {
        biased;
        signal = signals.next_stop() => {
            info!(event = "stopped", signal, "received {signal}; stopped before the store was available");
            Ok(false)
        }
        ready = ready => ready.map(|()| true),
    }
}

/// What the cache of job files depends on besides the files: this program and the time zones.
fn cache_tag(setting: &DaemonEnv) -> String {
    let program = match fs::metadata(&setting.program) {
        Ok(file) => format!("{:?}", (file.dev(), file.ino(), file.size(), file.ctime(), file.ctime_nsec())),
        // Without a way to recognise the program, no cache is used.
        Err(_) => format!("unknown {}", SystemEntropy.bits()),
    };
    let rules = &setting.zone_rules;
    format!("{VERSION} {program} {} {}", rules.version, rules.origin)
}

/// The environment of the keeper. It has no secrets, because programs of the same user may be able to read it.
fn keeper_env(env: &[(String, String)]) -> Vec<(String, String)> {
    let is_kept = |name: &str| {
        KEEPER_VARIABLES.contains(&name) || (cfg!(debug_assertions) && name == cronhold_keeper::fail::VARIABLE)
    };
    env.iter().filter(|(name, _)| is_kept(name)).cloned().collect()
}

/// Connects the parts of the node.
fn assemble(
    store: Arc<dyn Store>,
    options: Options,
    files: JobDirectories,
    front: Option<BoundServer>,
    (setting, pass_env): (&DaemonEnv, &[String]),
    home: &StateDir,
    log: &Log,
) -> Result<NodeParts, CliError> {
    let system_clock: Arc<dyn MachineClock> = Arc::new(SystemClock::new().map_err(|error| cannot_start(&error))?);
    // The keeper outlives the directory in which the daemon was started, and so do programs.
    let data = home.path().canonicalize().map_err(|error| cannot_start(&error))?;
    let host_env = HostEnv::new(setting.env.iter().cloned()).with_inherited(pass_env).with_data(&data);
    let observer = log::program_event_observer(log.clone());
    let mail = mail_settings(&setting.env)?;
    let programs = LocalRunner::new(VERSION, Arc::clone(&system_clock), host_env, observer, data.clone(), mail);
    let programs = programs.map_err(|error| cannot_start(&error))?;
    let entropy: Arc<dyn EntropySource> = Arc::new(SystemEntropy);
    let subscriptions = options.run_subscriptions.clone();
    let (store, channels) = ChannelParts::new(store, subscriptions, &system_clock, &entropy);
    let programs = Arc::new(programs.with_tasks(store.task_store()));
    let outputs = OutputShipper::start(data.clone(), Arc::clone(&store), Arc::clone(&programs), SystemClock::new);
    let outputs = outputs.map_err(|error| cannot_start(&error))?;
    let client_options = ClientOptions {
        data,
        program: setting.program.clone(),
        version: VERSION.to_owned(),
        log_args: log.to_args(),
        env: keeper_env(&setting.env),
    };
    let client = KeeperClient::start(client_options, programs.keeper_wakeup(), Arc::clone(&programs) as _);
    let client = client.map_err(|error| cannot_start(&error))?;
    let feed = Arc::new(cronhold_server::FeedBuffer::default());
    let reconciling = Arc::new(ReconcileRequests::default());
    let mut observers: Vec<Arc<dyn EngineObserver>> =
        vec![Arc::new(log.clone()), Arc::clone(&programs) as _, files.status() as _, Arc::clone(&feed) as _];
    if store.shared().is_some() {
        observers.push(Arc::clone(&reconciling) as _);
    }
    observers.extend(channels.iter().flat_map(ChannelParts::observers));
    let ports = NodePorts {
        clock: system_clock,
        entropy,
        store,
        programs: Arc::clone(&programs) as _,
        feed: Arc::new(ObserverList(observers)),
    };
    #[cfg(debug_assertions)]
    let ports = crate::fail_ports::wrap(ports, &setting.env);
    Ok(NodeParts { ports, options, programs, outputs, client, files, front, feed, reconciling, channels })
}

/// The mail server and the sender of mails, from the environment.
fn mail_settings(env: &[(String, String)]) -> Result<MailSettings, CliError> {
    let value =
        |wanted: &str| env.iter().find(|(name, text)| name == wanted && !text.is_empty()).map(|(_, text)| &text[..]);
    MailSettings::parse(value(SMTP_VARIABLE), value(MAIL_FROM_VARIABLE)).map_err(|error| {
        let name = if matches!(error, MailSettingsError::From(_)) { MAIL_FROM_VARIABLE } else { SMTP_VARIABLE };
        CliError::usage(format!("{name}: {error}"), MAIL_HINT)
    })
}

/// All receivers of the node's events: the log; programs, which are forgotten when their end is stored; the job files,
/// which may wait for a job to be stored; readers of the feed; and, where other programs share the store, the part that
/// notifies them.
#[derive(Debug)]
struct ObserverList(Vec<Arc<dyn EngineObserver>>);

impl EngineObserver for ObserverList {
    fn on_event(&self, event: &EngineEvent<'_>) {
        self.0.iter().for_each(|observer| observer.on_event(event));
    }
}

/// Runs the node until a signal stops it, or the store fails for good.
async fn live(
    parts: NodeParts,
    mut signals: SignalListener,
    home: &StateDir,
    log: &Log,
) -> Result<ExitStatus, CliError> {
    let NodeParts { ports, options, programs, outputs, client, files, front, feed, reconciling, channels } = parts;
    let (clock, store) = (Arc::clone(&ports.clock), Arc::clone(&ports.store));
    let (this, status) = (options.node, files.status());
    let (requests, loaders) = (files.status(), files.loaders());
    // Nothing is claimed before the keeper can start programs.
    let world = DecisionContext { keeper_problem: Some(Arc::from(KEEPER_PENDING)), ..files.world().clone() };
    let (engine, node) = Engine::new(ports, options, world);
    let peers = CronkenThread::new(&files, &store, &node, this, reconciling, log);
    let server_parts =
        ServerParts { node: node.clone(), store: Arc::clone(&store), clock: Arc::clone(&clock), status, feed, this };
    let face = start_server(front, server_parts, home)?;
    let mut running = std::pin::pin!(engine.run());
    let startup = async {
        programs.wait_for_keeper().await;
        // Job files and jobs of other programs are applied before the node starts, so that it does not run a job that
        // was changed or removed while the daemon was down.
        prepare(files, peers, &node, store, &*clock, face.as_ref(), log).await;
        std::future::pending::<()>().await;
    };
    let mut startup = std::pin::pin!(startup);
    let mut reporting = std::pin::pin!(programs.run(&node));
    let mut connecting = std::pin::pin!(connect_tasks(channels.as_ref(), &node));
    loop {
        tokio::select! {
            biased;
            request = signals.next() => match request {
                SignalRequest::Reload => requests.reload_for_signal(log),
                SignalRequest::Stop(signal) => {
                    info!(event = "stopping", signal, "received {signal}; stopping, unfinished runs continue at the next start");
                    break;
                }
            },
            () = &mut startup => {}
            () = &mut reporting => {}
            () = &mut connecting => {}
            ended = &mut running => return ended.map(|()| ExitStatus::Done).map_err(engine_failure),
        }
    }
    // No program is started or reported from here on; the next start continues with what is left.
    drop(client);
    drop(outputs);
    log_programs_left(programs.running_count());
    let stopping = stop_node(&loaders, &node);
    let stop = async {
        tokio::select! {
            biased;
            never = stopping => match never {},
            ended = &mut running => ended,
        }
    };
    let ended = tokio::select! {
        biased;
        signal = signals.next_stop() => {
            info!(event = "aborted", signal, "received {signal} again; stopped immediately");
            face.iter().for_each(RunningServer::abandon);
            return Ok(ExitStatus::Refused);
        }
        ended = stop => Some(ended),
        () = clock.sleep(STOP_WAIT) => None,
    };
    face.iter().for_each(RunningServer::stop);
    exit_of(ended)
}

/// Connects jobs with tasks until it is dropped, if the store keeps tasks.
async fn connect_tasks(channels: Option<&ChannelParts>, node: &NodeHandle) {
    if let Some(channels) = channels {
        channels.run(node).await;
    }
    std::future::pending::<()>().await;
}

/// Starts the HTTP server, if its address is bound.
fn start_server(
    front: Option<BoundServer>,
    parts: ServerParts,
    home: &StateDir,
) -> Result<Option<RunningServer>, CliError> {
    let server = front.map(|front| front.start(parts, home)).transpose()?;
    if let Some(server) = &server {
        info!(event = "listening", url = server.url(), "listening on {}", server.url());
    }
    Ok(server)
}

fn log_programs_left(count: usize) {
    if count > 0 {
        info!(event = "programs_left", count, "{} left running with the keeper", counted(count, "program"));
    }
}

/// Stops the node. It releases the loader locks with its last commit, so that other nodes need not wait for them.
async fn stop_node(loaders: &LoaderLocks, node: &NodeHandle) -> Infallible {
    tokio::join!(loaders.release_all(node), node.stop());
    std::future::pending().await
}

/// Logs how the node stopped, and returns the exit code. `None` means that it did not stop in time.
fn exit_of(ended: Option<Result<(), EngineError>>) -> Result<ExitStatus, CliError> {
    match ended {
        Some(ended) => {
            info!(event = "stopped", "stopped");
            ended.map(|()| ExitStatus::Done).map_err(engine_failure)
        }
        None => {
            warn!(event = "stop_timed_out", "stopped without waiting longer than {STOP_WAIT} for the store");
            Ok(ExitStatus::Done)
        }
    }
}

/// Applies the job files and the jobs of other programs, waits until the node has recovered, and watches the files.
async fn prepare(
    mut files: JobDirectories,
    peers: CronkenThread,
    node: &NodeHandle,
    store: Arc<dyn Store>,
    clock: &dyn MachineClock,
    face: Option<&RunningServer>,
    log: &Log,
) {
    if files.has_any() {
        files.acquire_locks(node, &*store, clock).await;
        let plan = files.first_plan();
        let (unchanged, kept) = (plan.unchanged, plan.kept);
        let applied = files.apply(plan, node, clock).await;
        files.report_all_mistakes();
        let (shown, summary) = (files.shown(), applied.summary(unchanged, kept));
        if applied.has_jobs(unchanged) {
            let (put, removed) = applied.counts();
            info!(event = "job_files_loaded", directories = shown, put, removed, unchanged, kept, "{shown}: {summary}");
        } else {
            warn!(event = "job_files_empty", directories = shown, kept, "{shown}: {summary}");
        }
    }
    return_freed_memory();
    peers.begin().await;
    node.begin().await;
    log.ready().await;
    face.into_iter().for_each(RunningServer::set_ready);
    let warnings = store.health().await.warnings;
    warnings.iter().for_each(|warning| warn!(event = "store_warning", "{warning}"));
    info!(event = "ready", "ready");
    if let Some(face) = face {
        face.show_link();
    }
    if files.has_any()
        && let Err(error) = files.follow(node.clone(), store)
    {
        warn!(event = "job_files_unwatched", "job files are not watched, and changes apply at the next start: {error}");
    }
}

/// The level that a short form of `--log` stands for.
fn short_form(up: &UpArgs) -> Option<Level> {
    match (up.quiet, up.verbose) {
        (true, _) => Some(Level::WARN),
        (_, true) => Some(Level::DEBUG),
        _ => None,
    }
}

pub(crate) fn cannot_start(error: &io::Error) -> CliError {
    let message = format!("cannot create timers or threads: {error}");
    CliError::refused(message, "check the limit of open files (`ulimit -n`)")
}

pub(crate) fn engine_failure(error: EngineError) -> CliError {
    match error {
        EngineError::Store(fault) => store_failure(&fault),
        EngineError::NameTaken { .. } => CliError::refused(
            error.to_string(),
            "give this node another name with `--name`, or take over the name with `--force`",
        ),
    }
}

pub(crate) fn store_failure(error: &impl Error) -> CliError {
    CliError::Refused { message: error.to_string(), hint: None }
}

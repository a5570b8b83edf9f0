//! The daemon: everything is put together, runs until it is asked to stop, and stops.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cronhold_cli::{Exit, Failure, UpArgs, counted};
use cronhold_core::{NodeId, World};
use cronhold_engine::{Clock, Engine, EngineError, Entropy, Feed, Handle, News, Options, Ports};
use cronhold_keeper::client::{Client, Setup};
use cronhold_programs::launch::Surroundings;
use cronhold_schedule::Span;
use cronhold_store::{Fault, Store};
use cronhold_wiring::Around;

use crate::await_store::await_store;
use crate::chance::SystemEntropy;
use crate::clock::{self, SystemClock};
use crate::front::{self, Face, Front, Known};
use crate::home::{Home, Places};
use crate::job_files::{self, JobFiles, Loaders};
use crate::log::{Log, Weight};
use crate::outputs::Outputs;
use crate::outside::{Programs, VERSION};
use crate::peers::{Bell, Peers};
use crate::signals::{Asked, Signals};
use crate::zone_rules::ZoneRules;

/// A node that was asked to stop has so long for what it is about; then it is left, which loses nothing.
const STOP_WAIT: Span = Span::from_secs(10);

/// What the daemon takes from the process that it runs in.
#[derive(Debug)]
pub struct Setting {
    /// Where users keep what programs write for them.
    pub places: Places,
    /// Zone data.
    pub zone_rules: ZoneRules,
    /// The environment.
    pub env: Vec<(String, String)>,
    /// The program that this is.
    pub program: PathBuf,
}

/// Everything that a node is made of.
struct Parts {
    ports: Ports,
    options: Options,
    programs: Arc<Programs>,
    /// The thread that stores what programs write; it ends with this.
    outputs: Outputs,
    /// The line to the keeper; it ends with this.
    client: Client,
    /// The job files, and zones and calendars with them.
    files: JobFiles,
    /// The way in for everybody else, and what they are told.
    front: Option<Front>,
    feed: Arc<cronhold_server::Feed>,
    /// Rings when this node has changed what other programs share.
    bell: Arc<Bell>,
}

/// Runs the daemon until it is asked to stop.
pub fn up(up: &UpArgs, setting: &Setting) -> Result<Exit, Failure> {
    let zones = &setting.zone_rules.zones;
    let zone = zones.get(&up.timezone).map_err(|error| Failure::flag("--timezone", error))?;
    let home = Home::choose(up.data.as_deref(), &setting.places)?;
    let url = setting.places.named_store(up.store.as_deref())?.unwrap_or_else(|| home.store_url());
    let roots = job_files::roots(&up.jobs)?;
    let listen = front::listen(up)?;
    let labels = up.labels()?;
    home.make()?;
    // Held until the daemon ends.
    let _occupied = url.is_shared().then(|| home.occupy()).transpose()?;
    let node = home.node_id(|| NodeId::from_bits(SystemEntropy.bits()))?;
    let memory = url.is_shared().then(|| home.store_memory(&url));
    let around = Around { memory, accept_loss: up.accept_loss, ..Around::new(Arc::new(clock::now), Arc::clone(zones)) };
    let store = cronhold_wiring::open(&url, around).map_err(|message| Failure::Refused { message, hint: None })?;
    let log = Log::new(weight(up), io::stderr());
    let version = Arc::clone(&setting.zone_rules.version);
    let world = World { labels: Arc::new(labels), ..World::new(Arc::clone(zones), version, zone) };
    let name = up.name.clone().unwrap_or_else(host_name);
    let options = Options { force: up.force, ..Options::new(node, name) };
    log.say(Weight::Usual, format!("node {} ({node}), store {url}", options.name));
    let rules = &setting.zone_rules;
    log.say(Weight::Detail, format!("zone data {} from {}", rules.version, rules.origin));

    let executor = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let executor = executor.map_err(|error| no_executor(&error))?;
    let outcome = executor.block_on(async {
        // Whoever asks before everything is there is heard when it is.
        let mut signals = Signals::new().map_err(|error| no_executor(&error))?;
        tokio::select! {
            biased;
            signal = signals.next_stop() => {
                log.say(Weight::Usual, format!("{signal}: stopped"));
                return Ok(Exit::Done);
            }
            there = await_store(&*store, &log) => there?,
        }
        // A store that is in use says more of another daemon than an address that is.
        let front = listen.map(|listen| Front::open(&listen, up.link, &home)).transpose()?;
        let files = JobFiles::load(node, roots, world, &*store, clock::now(), &log).await;
        let files = files.map_err(|fault| gave_up(&fault))?;
        let parts = assemble(store, options, files, front, setting, &home, &log)?;
        live(parts, signals, &home, &log).await
    });
    log.end();
    outcome
}

/// Puts the parts of the node together.
fn assemble(
    store: Arc<dyn Store>,
    options: Options,
    files: JobFiles,
    front: Option<Front>,
    setting: &Setting,
    home: &Home,
    log: &Log,
) -> Result<Parts, Failure> {
    let system_clock: Arc<dyn Clock> = Arc::new(SystemClock::new().map_err(|error| no_executor(&error))?);
    let surroundings = Surroundings::new(setting.env.iter().cloned());
    let programs = Programs::new(Arc::clone(&system_clock), surroundings, log.clone());
    let programs = Arc::new(programs.map_err(|error| no_executor(&error))?);
    // The keeper outlives the directory in which the daemon was started.
    let data = home.path().canonicalize().map_err(|error| no_executor(&error))?;
    let outputs = Outputs::start(data.clone(), Arc::clone(&store), Arc::clone(&programs), log.clone());
    let outputs = outputs.map_err(|error| no_executor(&error))?;
    let setup = Setup { data, program: setting.program.clone(), version: VERSION.to_owned() };
    let client = Client::start(setup, programs.keeper_bell(), Arc::clone(&programs) as _);
    let client = client.map_err(|error| no_executor(&error))?;
    let feed = Arc::new(cronhold_server::Feed::default());
    let bell = Arc::new(Bell::default());
    let mut everyone: Vec<Arc<dyn Feed>> =
        vec![Arc::new(log.clone()), Arc::clone(&programs) as _, files.shelf() as _, Arc::clone(&feed) as _];
    if store.shared().is_some() {
        everyone.push(Arc::clone(&bell) as _);
    }
    let everyone = Everyone(everyone);
    let outside = Arc::clone(&programs) as _;
    let ports =
        Ports { clock: system_clock, entropy: Arc::new(SystemEntropy), store, outside, feed: Arc::new(everyone) };
    #[cfg(debug_assertions)]
    let ports = crate::fail_ports::around(ports, &setting.env);
    Ok(Parts { ports, options, programs, outputs, client, files, front, feed, bell })
}

/// Who is told what happens: the log; programs, which need not be remembered when it is stored what became of them; the
/// job files, which may wait for a job to come or go; whoever listens at the API; and, where other programs share the
/// store, who tells them.
#[derive(Debug)]
struct Everyone(Vec<Arc<dyn Feed>>);

impl Feed for Everyone {
    fn tell(&self, news: &News<'_>) {
        self.0.iter().for_each(|one| one.tell(news));
    }
}

/// Runs the node until a signal asks it to stop, or the store is broken.
async fn live(parts: Parts, mut signals: Signals, home: &Home, log: &Log) -> Result<Exit, Failure> {
    let Parts { ports, options, programs, outputs, client, files, front, feed, bell } = parts;
    let (clock, store) = (Arc::clone(&ports.clock), Arc::clone(&ports.store));
    let (this, shelf) = (options.node, files.shelf());
    let (requests, loaders) = (files.shelf(), files.loaders());
    let (engine, node) = Engine::new(ports, options, files.world().clone());
    let peers = Peers::new(&files, &store, &node, this, bell, log);
    let face = front.map(|front| {
        let known =
            Known { node: node.clone(), store: Arc::clone(&store), clock: Arc::clone(&clock), shelf, feed, this };
        front.answer(known, home)
    });
    let face = face.transpose()?;
    if let Some(face) = &face {
        log.say(Weight::Usual, format!("listening on {}", face.url()));
    }
    let mut running = std::pin::pin!(engine.run());
    let company = async {
        // What the files and other programs say is asked for before the node begins, so that a job that was changed or
        // removed meanwhile is not run as it was.
        get_ready(files, peers, &node, store, &*clock, face.as_ref(), log).await;
        std::future::pending::<()>().await;
    };
    let mut company = std::pin::pin!(company);
    let mut carrying = std::pin::pin!(programs.carry(&node));
    loop {
        tokio::select! {
            biased;
            asked = signals.next() => match asked {
                Asked::Reload => requests.reload_for_signal(log),
                Asked::Stop(signal) => {
                    let words = format!("{signal}: stopping; runs that are not over go on at the next start");
                    log.say(Weight::Usual, words);
                    break;
                }
            },
            () = &mut company => {}
            () = &mut carrying => {}
            ended = &mut running => return ended.map(|()| Exit::Done).map_err(halted),
        }
    }
    // Nothing new is begun or heard of; what is left is taken up at the next start.
    drop(client);
    drop(outputs);
    let left = programs.running();
    if left > 0 {
        log.say(Weight::Usual, format!("{} left running with the keeper", counted(left, "program")));
    }
    let asked = give_up(&loaders, &node);
    let stop = async {
        tokio::select! {
            biased;
            never = asked => match never {},
            ended = &mut running => ended,
        }
    };
    let ended = tokio::select! {
        biased;
        signal = signals.next_stop() => {
            log.say(Weight::Usual, format!("{signal} again: ended at once"));
            face.iter().for_each(Face::abandon);
            return Ok(Exit::Refused);
        }
        ended = stop => Some(ended),
        () = clock.sleep(STOP_WAIT) => None,
    };
    face.iter().for_each(Face::stop);
    told_end(ended, log)
}

/// Asks the node to stop. The directories are given up with its last turn, so that others need not wait for them.
async fn give_up(loaders: &Loaders, node: &Handle) -> Infallible {
    tokio::join!(loaders.let_go(node), node.stop());
    std::future::pending().await
}

/// Says how it stopped. Where nothing is known of the end, it was not waited for any longer.
fn told_end(ended: Option<Result<(), EngineError>>, log: &Log) -> Result<Exit, Failure> {
    match ended {
        Some(ended) => {
            log.say(Weight::Usual, "stopped");
            ended.map(|()| Exit::Done).map_err(halted)
        }
        None => {
            log.say(Weight::Trouble, format!("stopped without waiting longer than {STOP_WAIT} for the store"));
            Ok(Exit::Done)
        }
    }
}

/// Asks for what the job files and other programs say, tells when the node has taken up everything, and follows the files from then on.
async fn get_ready(
    mut files: JobFiles,
    peers: Peers,
    node: &Handle,
    store: Arc<dyn Store>,
    clock: &dyn Clock,
    face: Option<&Face>,
    log: &Log,
) {
    if files.has_any() {
        files.hold(node, &*store, clock).await;
        let plan = files.first_plan();
        let (unchanged, kept) = (plan.unchanged, plan.kept);
        let applied = files.apply(plan, node, clock).await;
        files.tell_all();
        let weight = if applied.has_jobs(unchanged) { Weight::Usual } else { Weight::Trouble };
        log.say(weight, format!("{}: {}", files.shown(), applied.words(unchanged, kept)));
    }
    peers.begin().await;
    node.begin().await;
    log.ready().await;
    face.into_iter().for_each(Face::set_ready);
    store.health().await.warnings.into_iter().for_each(|warning| log.say(Weight::Trouble, warning));
    log.say(Weight::Usual, "ready");
    if let Some(link) = face.and_then(Face::link) {
        log.say(Weight::Trouble, format!("open the page with this link, which works once: {link}"));
    }
    if files.has_any()
        && let Err(error) = files.follow(node.clone(), store)
    {
        log.say(Weight::Trouble, format!("changes of job files are not seen before the next start: {error}"));
    }
}

fn weight(up: &UpArgs) -> Weight {
    match (up.quiet, up.verbose) {
        (true, _) => Weight::Trouble,
        (_, true) => Weight::Detail,
        _ => Weight::Usual,
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(crate) fn no_executor(error: &io::Error) -> Failure {
    let message = format!("the system does not give what the daemon needs to wait for things: {error}");
    Failure::refused(message, "look at the limit of open files (`ulimit -n`)")
}

fn halted(error: EngineError) -> Failure {
    match error {
        EngineError::Store(fault) => gave_up(&fault),
        EngineError::NameTaken { .. } => Failure::refused(
            error.to_string(),
            "give this node another name: `--name`, or take its name over: `--force`",
        ),
    }
}

pub(crate) fn gave_up(fault: &Fault) -> Failure {
    Failure::Refused { message: fault.to_string(), hint: None }
}

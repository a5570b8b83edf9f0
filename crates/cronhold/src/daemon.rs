//! The daemon: everything is put together, runs until it is asked to stop, and stops.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cronhold_cli::{Exit, Failure, Up, counted};
use cronhold_core::{NodeId, World};
use cronhold_engine::{Clock, Engine, Entropy, Feed, Handle, News, Options, Ports};
use cronhold_keeper::client::{Client, Setup};
use cronhold_programs::launch::Surroundings;
use cronhold_schedule::Span;
use cronhold_store::{Fault, Store};
use cronhold_wiring::{Around, StoreUrl};

use crate::chance::SystemEntropy;
use crate::clock::{self, SystemClock};
use crate::home::{Home, Places};
use crate::job_files::{JobFiles, Plan};
use crate::log::{Log, Weight};
use crate::outputs::Outputs;
use crate::outside::{Programs, VERSION};
use crate::signals::Signals;
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
    world: World,
    programs: Arc<Programs>,
    /// The thread that stores what programs write; it ends with this.
    outputs: Outputs,
    /// The line to the keeper; it ends with this.
    client: Client,
    /// What the job files want changed, and where they are.
    jobs: Option<(PathBuf, Plan)>,
}

/// Runs the daemon until it is asked to stop.
pub fn up(up: &Up, setting: &Setting) -> Result<Exit, Failure> {
    let zones = &setting.zone_rules.zones;
    let zone = zones.get(&up.timezone).map_err(|error| Failure::flag("--timezone", error))?;
    let home = Home::choose(up.data.as_deref(), &setting.places)?;
    let url = up.store.clone().unwrap_or_else(|| home.store_url());
    let url = StoreUrl::parse(&url).map_err(|error| Failure::flag("--store", error))?;
    if let Some(jobs) = up.jobs.as_ref().filter(|jobs| !jobs.is_dir()) {
        let message = format!("--jobs: there is no directory {}", jobs.display());
        return Err(Failure::usage(message, "give the directory that the job files are in"));
    }
    home.make()?;
    let node = home.node_id(|| NodeId::from_bits(SystemEntropy.bits()))?;
    let around = Around { clock: Arc::new(clock::now), zones: Arc::clone(zones) };
    let store = cronhold_wiring::open(&url, around).map_err(|message| Failure::Refused { message, hint: None })?;

    let log = Log::new(weight(up), io::stderr());
    let world = World {
        zones: Arc::clone(zones),
        zones_version: Arc::clone(&setting.zone_rules.version),
        zone,
        calendars: Arc::default(),
        labels: Arc::new(BTreeSet::new()),
    };
    let options = Options::new(node, up.name.clone().unwrap_or_else(host_name));
    log.say(Weight::Usual, format!("node {} ({node}), store {url}", options.name));
    let rules = &setting.zone_rules;
    log.say(Weight::Detail, format!("zone data {} from {}", rules.version, rules.origin));

    let executor = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let executor = executor.map_err(|error| no_executor(&error))?;
    let outcome = executor.block_on(async {
        let parts = assemble(store, options, world, up, setting, &home, &log).await?;
        live(parts, &log).await
    });
    log.end();
    outcome
}

/// Reads the job files and puts the parts of the node together.
async fn assemble(
    store: Arc<dyn Store>,
    options: Options,
    mut world: World,
    up: &Up,
    setting: &Setting,
    home: &Home,
    log: &Log,
) -> Result<Parts, Failure> {
    let system_clock: Arc<dyn Clock> = Arc::new(SystemClock::new().map_err(|error| no_executor(&error))?);
    let entropy = Arc::new(SystemEntropy);
    let mut jobs = None;
    if let Some(dir) = &up.jobs {
        let files = JobFiles::load(dir, &world, clock::now(), log);
        world.calendars = Arc::new(files.calendars());
        let plan = files.plan(&*store, &world, &*entropy).await.map_err(|fault| gave_up(&fault))?;
        jobs = Some((dir.clone(), plan));
    }
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
    let feed = Arc::new(Both { log: log.clone(), programs: Arc::clone(&programs) });
    let ports = Ports { clock: system_clock, entropy, store, outside: Arc::clone(&programs) as _, feed };
    Ok(Parts { ports, options, world, programs, outputs, client, jobs })
}

/// What happens is told to the log, and to programs, which need not be remembered when it is stored what became of
/// them.
#[derive(Debug)]
struct Both {
    log: Log,
    programs: Arc<Programs>,
}

impl Feed for Both {
    fn tell(&self, news: &News<'_>) {
        self.log.tell(news);
        self.programs.tell(news);
    }
}

/// Runs the node until a signal asks it to stop, or the store is broken.
async fn live(parts: Parts, log: &Log) -> Result<Exit, Failure> {
    let Parts { ports, options, world, programs, outputs, client, jobs } = parts;
    let mut signals = Signals::new().map_err(|error| no_executor(&error))?;
    let clock = Arc::clone(&ports.clock);
    let (engine, node) = Engine::new(ports, options, world);
    let mut running = std::pin::pin!(engine.run());
    let company = async {
        // What the files say is asked for before the node begins, so that a job that was changed or removed meanwhile
        // is not run as it was.
        get_ready(jobs, &node, &*clock, log).await;
        std::future::pending::<()>().await;
    };
    let mut company = std::pin::pin!(company);
    let mut carrying = std::pin::pin!(programs.carry(&node));
    loop {
        tokio::select! {
            biased;
            signal = signals.next() => {
                log.say(Weight::Usual, format!("{signal}: stopping; runs that are not over go on at the next start"));
                break;
            }
            () = &mut company => {}
            () = &mut carrying => {}
            ended = &mut running => return ended.map(|()| Exit::Done).map_err(|fault| gave_up(&fault)),
        }
    }
    // Nothing new is begun or heard of; what is left is taken up at the next start.
    drop(client);
    drop(outputs);
    let left = programs.running();
    if left > 0 {
        log.say(Weight::Usual, format!("{} left running with the keeper", counted(left, "program")));
    }
    let stop = async {
        node.stop().await;
        running.await
    };
    tokio::select! {
        biased;
        signal = signals.next() => {
            log.say(Weight::Usual, format!("{signal} again: ended at once"));
            Ok(Exit::Refused)
        }
        ended = stop => {
            log.say(Weight::Usual, "stopped");
            ended.map(|()| Exit::Done).map_err(|fault| gave_up(&fault))
        }
        () = clock.sleep(STOP_WAIT) => {
            log.say(Weight::Trouble, format!("stopped without waiting longer than {STOP_WAIT} for the store"));
            Ok(Exit::Done)
        }
    }
}

/// Asks for what the job files say, and tells when the node has taken up everything.
async fn get_ready(jobs: Option<(PathBuf, Plan)>, node: &Handle, clock: &dyn Clock, log: &Log) {
    if let Some((dir, plan)) = jobs {
        let (unchanged, kept) = (plan.unchanged, plan.kept);
        let applied = plan.apply(node, clock, log).await;
        let weight = if applied.has_jobs(unchanged) { Weight::Usual } else { Weight::Trouble };
        log.say(weight, format!("{}: {}", dir.display(), applied.words(unchanged, kept)));
    }
    node.begin().await;
    log.ready().await;
    log.say(Weight::Usual, "ready");
}

fn weight(up: &Up) -> Weight {
    match (up.quiet, up.verbose) {
        (true, _) => Weight::Trouble,
        (_, true) => Weight::Detail,
        _ => Weight::Usual,
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn no_executor(error: &io::Error) -> Failure {
    let message = format!("the system does not give what the daemon needs to wait for things: {error}");
    Failure::refused(message, "look at the limit of open files (`ulimit -n`)")
}

fn gave_up(fault: &Fault) -> Failure {
    Failure::Refused { message: fault.to_string(), hint: None }
}

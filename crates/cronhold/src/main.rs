//! The binary: reads the clock, the terminal, the environment and the command line, and passes them to the crates that
//! do the work.

mod pipe;
mod prompt;

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use cronhold_cli::{
    Cli, CliEnv, CliError, CliSession, CliVerb, DaemonFlags, ExitStatus, KeeperArgs, PluginVerb, SidejobStore,
    StoreVerb, WorkerRunArgs, WorkerVerb,
};
use cronhold_daemon::bench::{self, BenchEnv};
use cronhold_daemon::daemon::{self, DaemonEnv};
use cronhold_daemon::local_store_server::LocalStoreServer;
use cronhold_daemon::log::{self, LogOptions};
use cronhold_daemon::state_dir::{EnvPaths, StateDir};
use cronhold_daemon::worker::{self, WorkerEnv};
use cronhold_daemon::zone_rules::ZoneRules;
use cronhold_daemon::{backup, clock, plugin_check};
use cronhold_keeper::fail;
use cronhold_schedule::ZoneRegistry;
use cronhold_wiring::StoreUrl;
use cronhold_worker::executable::launch_worker_stage;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::pipe::ClosablePipe;

/// The verbs with which the keeper starts this program for the second stage of a launch, and to collect outputs.
const STAGE_VERB: &str = "keeper-launch";
const COLLECTOR_VERB: &str = "keeper-outputs";

/// Does the work of a process that this program starts between itself and another one. That has to be quick, so nothing
/// else is set up.
fn run_stage() -> Option<ExitCode> {
    let verb = std::env::args_os().nth(1)?;
    match verb.to_str()? {
        STAGE_VERB => Some(cronhold_keeper::launch_stage()),
        COLLECTOR_VERB => Some(cronhold_keeper::collect_outputs()),
        worker::LAUNCH_VERB => Some(launch_worker_stage(&std::env::args_os().skip(2).collect::<Vec<_>>())),
        _ => None,
    }
}

fn main() -> ExitCode {
    if let Some(exit) = run_stage() {
        return exit;
    }
    if let Some(point) = variable(fail::VARIABLE) {
        fail::arm(&point.to_string_lossy());
    }
    // Clap shows help and usage mistakes itself and exits with 0 or 2.
    let cli = Cli::parse();
    let is_terminal = io::stderr().is_terminal();
    let colours = io::stdout().is_terminal() && is_terminal && colours_wanted();
    let zone_rules = || ZoneRules::find(variable("TZDIR"));
    let stdout = io::stdout().lock();
    let is_remote = matches!(cli.verb, CliVerb::Remote(_));
    let mut out =
        BufWriter::new(if is_remote { ClosablePipe::reporting_close(stdout) } else { ClosablePipe::new(stdout) });
    let mut err = ClosablePipe::new(io::stderr());
    let done = match &cli.verb {
        CliVerb::Question(question) => {
            let (zone_rules, surroundings) = (zone_rules(), surroundings());
            let local_store = LocalStoreServer::new(zone_rules.clone(), text("ZOOKEEPER_SERVERS"), false, false);
            let session = session(&cli.place, &zone_rules.zones, &surroundings, &local_store, colours);
            let exit = cronhold_cli::answer(question, &session, &mut out, &mut err);
            local_store.close(&mut err);
            Ok(exit)
        }
        CliVerb::Remote(verb) => {
            let (zone_rules, surroundings) = (zone_rules(), surroundings());
            let servers = text("ZOOKEEPER_SERVERS");
            let local_store =
                LocalStoreServer::new(zone_rules.clone(), servers, verb.is_follower(), verb.changes_jobs());
            let session = session(&cli.place, &zone_rules.zones, &surroundings, &local_store, colours);
            let exit = cronhold_cli::ask(verb, &session, &mut out, &mut err);
            local_store.close(&mut err);
            Ok(exit)
        }
        CliVerb::Up(up) => {
            hide_memory();
            let (zone_rules, env) = (zone_rules(), variables());
            let colours = is_terminal && colours_wanted();
            let log_filter = text(log::VARIABLE);
            daemon::up(up, &DaemonEnv { places: places(), zone_rules, env, program: program(), log_filter, colours })
        }
        CliVerb::Keeper(keeper) => match LogOptions::choose(&keeper.log, None, text(log::VARIABLE).as_deref()) {
            Ok(log_options) => return keep(keeper, log_options),
            Err(failure) => Err(failure),
        },
        CliVerb::Store(store) => match &store.verb {
            StoreVerb::Backup(wanted) => backup::backup(wanted, &places(), is_terminal, &mut out, &mut err),
        },
        CliVerb::Plugin(plugin) => match &plugin.verb {
            PluginVerb::Check(wanted) => plugin_check::check(wanted, &mut out),
        },
        CliVerb::Worker(command) => match &command.verb {
            Some(WorkerVerb::Check(wanted)) => worker::check::check(wanted, &program(), &mut out),
            None => run_worker(&command.run, &cli.place, colours),
        },
        CliVerb::Bench(wanted) => {
            let path = variable("PATH").map(PathBuf::into_os_string);
            let env = BenchEnv { places: places(), program: program(), path, is_terminal, colours };
            bench::bench(wanted, &env, &mut out, &mut err)
        }
    };
    let flushed = out.flush().map_err(CliError::Output);
    let exit = done.and_then(|exit| flushed.map(|()| exit));
    let exit = exit.unwrap_or_else(|failure| cronhold_cli::complain(&failure, colours, &mut err));
    ExitCode::from(exit.code())
}

fn run_worker(wanted: &WorkerRunArgs, place: &DaemonFlags, colours: bool) -> Result<ExitStatus, CliError> {
    let (zone_rules, surroundings) = (ZoneRules::find(variable("TZDIR")), surroundings());
    let servers = text("ZOOKEEPER_SERVERS");
    let local_store = LocalStoreServer::new(zone_rules.clone(), servers.clone(), false, false);
    let session = session(place, &zone_rules.zones, &surroundings, &local_store, colours);
    let env = WorkerEnv { program: &program(), zookeeper_servers: servers, log_filter: text(log::VARIABLE) };
    worker::run(wanted, &session, &env)
}

fn session<'a>(
    place: &'a DaemonFlags,
    zones: &'a Arc<ZoneRegistry>,
    surroundings: &'a CliEnv,
    stores: &'a LocalStoreServer,
    colours: bool,
) -> CliSession<'a> {
    let progress = io::stderr().is_terminal();
    let end_with_reader = pipe::end_with_reader;
    let is_terminal = io::stdout().is_terminal();
    CliSession {
        now: clock::now(),
        zones,
        colours,
        is_terminal,
        progress,
        place,
        surroundings,
        stores,
        prompt: prompt::terminal(),
        end_with_reader,
    }
}

/// The environment variables that name the daemon to use, and the user.
fn surroundings() -> CliEnv {
    // The variable may name a store for daemons that commands cannot use themselves.
    let is_for_daemons = |url: &str| StoreUrl::parse(url).is_ok_and(|url| !url.is_shared());
    CliEnv {
        url: text("CRONHOLD_URL"),
        store: text("CRONHOLD_STORE").filter(|url| !is_for_daemons(url)),
        sidejob: sidejob_store(),
        token: text("CRONHOLD_TOKEN"),
        data: StateDir::choose(None, &places()).ok().map(|home| home.path().to_owned()),
        user: user_name(),
    }
}

/// The Redis of tasks that SideJob's variables name, unless one of Cronhold's own names a daemon or a store.
fn sidejob_store() -> Option<SidejobStore> {
    if ["CRONHOLD_STORE", "CRONHOLD_URL", "CRONHOLD_DATA"].into_iter().any(|name| variable(name).is_some()) {
        return None;
    }
    let (origin, url) = StoreUrl::of_sidejob(text)?;
    Some(SidejobStore { origin, url })
}

/// The name of the person who runs a command: the caller of `sudo`, the user of the session, or else the user of the
/// process, for commands that cron or a container runs.
fn user_name() -> Option<String> {
    let uid = rustix::process::getuid();
    let called_sudo = text("SUDO_USER").filter(|_| uid.is_root());
    called_sudo.or_else(|| text("USER")).or_else(|| text("LOGNAME")).or_else(|| {
        let users = std::fs::read_to_string("/etc/passwd").ok()?;
        user_of(uid.as_raw(), &users)
    })
}

/// The name of a user id, from the content of `/etc/passwd`.
fn user_of(uid: u32, users: &str) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// Runs the keeper, which logs to standard error. It has one thread, so it writes its few lines itself.
fn keep(keeper: &KeeperArgs, log_options: LogOptions) -> ExitCode {
    hide_memory();
    log::install_unbuffered(log_options, io::stderr());
    let options = cronhold_keeper::Options::new(keeper.data.clone(), env!("CARGO_PKG_VERSION"));
    match cronhold_keeper::run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The daemon quotes this line. On a full disk it is lost, and the exit code still reports the failure.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Keeps other processes of the same user, such as programs, from reading the environment and the memory of this one.
/// Root can read both. There are no core dumps either.
fn hide_memory() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        // The log is not set up yet.
        let _ = writeln!(io::stderr(), "warning: cannot hide the environment from programs: {error}");
    }
}

/// The path of this program. If the file was replaced since the start, /proc still refers to the old one.
fn program() -> PathBuf {
    std::env::current_exe().ok().filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

#[expect(clippy::disallowed_methods, reason = "the binary is where the environment is read")]
fn variables() -> Vec<(String, String)> {
    let texts = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(texts).collect()
}

fn places() -> EnvPaths {
    EnvPaths {
        own: variable("CRONHOLD_DATA"),
        xdg: variable("XDG_DATA_HOME"),
        user: variable("HOME"),
        store: text("CRONHOLD_STORE"),
        zookeeper_servers: text("ZOOKEEPER_SERVERS"),
    }
}

/// A variable that is valid UTF-8.
fn text(name: &str) -> Option<String> {
    variable(name).and_then(|value| value.into_os_string().into_string().ok())
}

#[expect(clippy::disallowed_methods, reason = "the binary is where the environment is read")]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn colours_wanted() -> bool {
    variable("NO_COLOR").is_none()
}

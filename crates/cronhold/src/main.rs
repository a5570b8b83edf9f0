//! The binary: reads the clock, the terminal, the environment and the command line, and hands them to the rooms that do
//! the work.

mod pipe;

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use cronhold_cli::{Cli, CliEnv, DaemonFlags, Failure, KeeperArgs, Session, StoreVerb, Verb};
use cronhold_daemon::clerk::AtStore;
use cronhold_daemon::daemon::{self, Setting};
use cronhold_daemon::home::{Home, Places};
use cronhold_daemon::zone_rules::ZoneRules;
use cronhold_daemon::{backup, clock};
use cronhold_keeper::fail;
use cronhold_schedule::Zones;
use cronhold_wiring::StoreUrl;

use crate::pipe::Pipe;

/// How the keeper calls this program for the second stage of a launch.
const STAGE_VERB: &str = "keeper-launch";

fn main() -> ExitCode {
    // The keeper starts itself anew for some programs, and then only one thing is to be done, quickly.
    if std::env::args_os().nth(1).is_some_and(|verb| verb == STAGE_VERB) {
        return cronhold_keeper::launch_stage();
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
    let is_remote = matches!(cli.verb, Verb::Remote(_));
    let mut out = BufWriter::new(if is_remote { Pipe::telling(stdout) } else { Pipe::new(stdout) });
    let mut err = Pipe::new(io::stderr());
    let done = match &cli.verb {
        Verb::Question(question) => {
            let (zone_rules, surroundings) = (zone_rules(), surroundings());
            let at_store = AtStore::new(zone_rules.clone(), false, false);
            let session = session(&cli.place, &zone_rules.zones, &surroundings, &at_store, colours);
            let exit = cronhold_cli::answer(question, &session, &mut out, &mut err);
            at_store.close(&mut err);
            Ok(exit)
        }
        Verb::Remote(verb) => {
            let (zone_rules, surroundings) = (zone_rules(), surroundings());
            let at_store = AtStore::new(zone_rules.clone(), verb.is_follower(), verb.changes_jobs());
            let session = session(&cli.place, &zone_rules.zones, &surroundings, &at_store, colours);
            let exit = cronhold_cli::ask(verb, &session, &mut out, &mut err);
            at_store.close(&mut err);
            Ok(exit)
        }
        Verb::Up(up) => {
            let (zone_rules, env) = (zone_rules(), variables());
            daemon::up(up, &Setting { places: places(), zone_rules, env, program: program() })
        }
        Verb::Keeper(keeper) => return keep(keeper),
        Verb::Store(store) => match &store.verb {
            StoreVerb::Backup(wanted) => backup::backup(wanted, &places(), is_terminal, &mut out, &mut err),
        },
    };
    let flushed = out.flush().map_err(Failure::Output);
    let exit = done.and_then(|exit| flushed.map(|()| exit));
    let exit = exit.unwrap_or_else(|failure| cronhold_cli::complain(&failure, colours, &mut err));
    ExitCode::from(exit.code())
}

fn session<'a>(
    place: &'a DaemonFlags,
    zones: &'a Arc<Zones>,
    surroundings: &'a CliEnv,
    stores: &'a AtStore,
    colours: bool,
) -> Session<'a> {
    let progress = io::stderr().is_terminal();
    let end_with_reader = pipe::end_with_reader;
    Session { now: clock::now(), zones, colours, progress, place, surroundings, stores, end_with_reader }
}

/// What the environment says of daemons, and who asks.
fn surroundings() -> CliEnv {
    // What stands there for daemons that are started may be a store that only they can work on.
    let is_for_daemons = |url: &str| StoreUrl::parse(url).is_ok_and(|url| !url.is_shared());
    CliEnv {
        url: text("CRONHOLD_URL"),
        store: text("CRONHOLD_STORE").filter(|url| !is_for_daemons(url)),
        token: text("CRONHOLD_TOKEN"),
        data: Home::choose(None, &places()).ok().map(|home| home.path().to_owned()),
        user: text("USER").or_else(|| text("LOGNAME")),
    }
}

/// The keeper needs nothing that a daemon needs, and its log is whatever standard error is.
fn keep(keeper: &KeeperArgs) -> ExitCode {
    let options = cronhold_keeper::Options::new(keeper.data.clone(), env!("CARGO_PKG_VERSION"));
    match cronhold_keeper::run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // On a disk that is full nobody hears it, and the exit code still says that it failed.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The program that this is. When it was replaced meanwhile, the system still knows it.
fn program() -> PathBuf {
    std::env::current_exe().ok().filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

#[expect(clippy::disallowed_methods, reason = "the binary is where the environment is read")]
fn variables() -> Vec<(String, String)> {
    let texts = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(texts).collect()
}

fn places() -> Places {
    Places {
        own: variable("CRONHOLD_DATA"),
        xdg: variable("XDG_DATA_HOME"),
        user: variable("HOME"),
        store: text("CRONHOLD_STORE"),
    }
}

/// A variable that has to be text.
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

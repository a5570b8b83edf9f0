//! Finds the daemon for all commands that need one, and turns its errors into messages with hints. With `--store`, the
//! binary serves the store in the place of a daemon.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use cronhold_api::ProblemCode;
use cronhold_api::client::{CallError, CallerOptions, DaemonAddress, DaemonClient, JobFilter};
use cronhold_core::RunId;
use cronhold_schedule::text::{did_you_mean, shortened};
use serde::Deserialize;

use crate::{CliError, CliSession, NamedStore, ServedStore};

/// File in the data directory with the daemon's URL and process id.
const ADDRESS: &str = "address";
/// File in the data directory with the admin token.
const TOKEN: &str = "token";

/// Options that select the daemon.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Finding the daemon")]
pub struct DaemonFlags {
    /// Data directory of the daemon [default: $CRONHOLD_DATA, $XDG_DATA_HOME/cronhold, or ~/.local/share/cronhold]
    #[arg(long, value_name = "DIR", global = true)]
    pub data: Option<PathBuf>,
    /// URL of the daemon, such as http://127.0.0.1:2766, with the token in $CRONHOLD_TOKEN [default: $CRONHOLD_URL]
    #[arg(long, value_name = "URL", global = true)]
    pub url: Option<String>,
    /// URL of a shared store to use without a daemon, such as redis://127.0.0.1 [default: $CRONHOLD_STORE]
    #[arg(long, value_name = "URL", global = true)]
    pub store: Option<String>,
}

/// Environment variables that select the daemon. The binary reads them.
#[derive(Debug, Clone, Default)]
pub struct CliEnv {
    /// `CRONHOLD_DATA`, or the default data directory.
    pub data: Option<PathBuf>,
    /// Value of `CRONHOLD_URL`.
    pub url: Option<String>,
    /// `CRONHOLD_STORE`, if it names a shared store.
    pub store: Option<String>,
    /// The Redis of tasks that `SIDEJOB_URL` or `SIDEJOB_HOST` names, for commands about tasks. `None` if a variable of
    /// Cronhold itself names a daemon or a store.
    pub sidejob: Option<SidejobStore>,
    /// Value of `CRONHOLD_TOKEN`.
    pub token: Option<String>,
    /// Name of the user, recorded with changes.
    pub user: Option<String>,
}

/// The Redis of tasks that a variable of SideJob names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SidejobStore {
    /// The name of the variable.
    pub origin: &'static str,
    pub url: String,
}

/// What a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandSubject {
    /// Jobs, runs and everything else.
    Jobs,
    /// Tasks, which have the variables of SideJob too.
    Tasks,
}

/// Content of the file `address`.
#[derive(Debug, Deserialize)]
struct DaemonFiles {
    url: String,
    pid: u32,
}

/// How the daemon was found, for hints when it does not respond.
#[derive(Debug)]
enum DaemonLookup {
    /// By its URL.
    Url,
    /// By its data directory.
    Data { dir: PathBuf, pid: u32 },
    /// There is no daemon: this process serves a store.
    Store,
}

/// A client of the daemon, or of the store that this process serves.
#[derive(Debug)]
pub(crate) struct RemoteDaemon<'a> {
    /// The process of the command.
    pub(crate) session: &'a CliSession<'a>,
    /// The HTTP client.
    pub(crate) client: DaemonClient,
    way: DaemonLookup,
}

impl<'a> RemoteDaemon<'a> {
    /// Finds the daemon. Sends nothing yet.
    pub(crate) fn find(session: &'a CliSession<'a>) -> Result<Self, CliError> {
        Self::find_for(session, CommandSubject::Jobs)
    }

    /// Finds the daemon of a command about this subject. Sends nothing yet.
    pub(crate) fn find_for(session: &'a CliSession<'a>, subject: CommandSubject) -> Result<Self, CliError> {
        let around = session.surroundings;
        let user = around.user.clone();
        let (caller, way) = match daemon_target(session, subject)? {
            DaemonTarget::Url { address, dir } => {
                let token = around.token.clone();
                match dir.and_then(|dir| Some((dir, daemon_of(dir, &address)?))) {
                    Some((dir, file)) if token.is_none() => found_locally(dir, &file, address, user),
                    _ => (CallerOptions { address, local: None, token, user }, DaemonLookup::Url),
                }
            }
            DaemonTarget::Data(dir) => {
                let file = read_address_file(dir)?;
                let address = parse(&format!("{}", dir.join(ADDRESS).display()), &file.url)?;
                found_locally(dir, &file, address, user)
            }
            DaemonTarget::Store(named) => {
                let ServedStore { url, token } = session.stores.serve(&named)?;
                let address = parse(named.origin, &url)?;
                (CallerOptions { address, local: None, token: Some(token), user }, DaemonLookup::Store)
            }
        };
        let client = DaemonClient::new(caller).map_err(|error| unreachable(error.to_string(), "try again"))?;
        Ok(Self { session, client, way })
    }

    /// Converts the error of a request into a message with a hint.
    pub(crate) fn failure(&self, error: CallError) -> CliError {
        match error {
            CallError::Unreachable(message) => unreachable(message, self.hint_if_unreachable()),
            CallError::Broken(message) => unreachable(message, self.hint_if_unexpected()),
            CallError::Problem(problem) => match (problem.code, &self.way) {
                (ProblemCode::Unavailable, _) => CliError::Unreachable { message: problem.detail, hint: problem.hint },
                (ProblemCode::Unauthorized, DaemonLookup::Data { .. }) => {
                    unreachable(problem.detail, "run the command as the daemon's user")
                }
                (ProblemCode::Unauthorized, DaemonLookup::Url | DaemonLookup::Store) => {
                    let hint = "set CRONHOLD_TOKEN; `cronhold token show` on the daemon's machine shows the token";
                    CliError::refused(problem.detail, hint)
                }
                _ => CliError::Refused { message: problem.detail, hint: problem.hint },
            },
        }
    }

    /// Like `failure`, for a request about a job or run called `name`. If it does not exist, the hint suggests a similar
    /// job.
    pub(crate) fn failure_about(&self, name: &str, error: CallError) -> CliError {
        // A run id does not contain a job id.
        let is_id = RunId::parse(name).is_ok();
        let is_unknown = !is_id && error.problem().is_some_and(|problem| problem.code == ProblemCode::NotFound);
        let failure = self.failure(error);
        let job = name.split_once('#').map_or(name, |(job, _)| job);
        match failure {
            CliError::Refused { message, hint } if is_unknown => {
                CliError::Refused { message, hint: self.suggest_job(job).or(hint) }
            }
            other => other,
        }
    }

    /// A hint for a job that does not exist, or `None` if it does.
    fn suggest_job(&self, job: &str) -> Option<String> {
        let all = self.client.jobs(&JobFilter::default()).ok()?;
        let mut ids = all.jobs.iter().map(|job| job.id.as_str());
        if ids.clone().any(|id| id == job) {
            // The job exists, so something else is missing.
            return None;
        }
        // Users often remember the name without its folder.
        let end = format!("/{job}");
        let last = |id: &'_ str| id.rsplit('/').next().map(str::to_owned).unwrap_or_default();
        let near = ids.clone().find(|id| id.ends_with(&end)).or_else(|| did_you_mean(job, ids.clone())).or_else(|| {
            let names: Vec<String> = ids.clone().map(last).collect();
            let near = did_you_mean(job, names.iter().map(String::as_str))?;
            ids.clone().find(|id| last(id) == near)
        });
        Some(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if ids.next().is_none() => "there are no jobs yet; `cronhold add` creates one".to_owned(),
            None => "`cronhold list` lists all jobs".to_owned(),
        })
    }

    fn hint_if_unreachable(&self) -> String {
        match &self.way {
            DaemonLookup::Url => "check the URL, and whether the daemon is running".to_owned(),
            DaemonLookup::Store => "try again".to_owned(),
            DaemonLookup::Data { dir, pid } if has_died(*pid) => {
                format!("the daemon with this address (pid {pid}) is no longer running; {}", start(dir))
            }
            DaemonLookup::Data { dir, pid } => {
                format!(
                    "the daemon of {} (pid {pid}) does not respond; if it is no longer running, {}",
                    dir.display(),
                    start(dir)
                )
            }
        }
    }

    fn hint_if_unexpected(&self) -> String {
        match &self.way {
            DaemonLookup::Url => "check the URL: another program may be listening there".to_owned(),
            DaemonLookup::Store => "try again".to_owned(),
            DaemonLookup::Data { dir, pid } if has_died(*pid) => {
                let dir_shown = dir.display();
                format!(
                    "the daemon of {dir_shown} (pid {pid}) is no longer running, and another program listens there; {}",
                    start(dir)
                )
            }
            DaemonLookup::Data { dir, .. } => {
                format!("another daemon may have replaced the one of {}; {}", dir.display(), start(dir))
            }
        }
    }
}

/// The token of the selected daemon, which need not be running.
pub(crate) fn token(session: &CliSession<'_>) -> Result<String, CliError> {
    let around = session.surroundings;
    match daemon_target(session, CommandSubject::Jobs)? {
        DaemonTarget::Url { address, dir } => around
            .token
            .clone()
            .or_else(|| read_token(dir.filter(|dir| daemon_of(dir, &address).is_some())?))
            .ok_or_else(|| {
                let hint = "set CRONHOLD_TOKEN; `cronhold token show` on the daemon's machine shows the token";
                CliError::refused(format!("no token is known for the daemon at {address}"), hint)
            }),
        DaemonTarget::Data(dir) => read_token(dir).or_else(|| around.token.clone()).ok_or_else(|| {
            let file = dir.join(TOKEN);
            let hint = if file.exists() {
                "run the command as the daemon's user".to_owned()
            } else {
                format!("the daemon creates it at its first start; {}", start(dir))
            };
            CliError::refused(format!("cannot read a token from {}", file.display()), hint)
        }),
        DaemonTarget::Store(named) => Err(no_daemon(&named, "`cronhold token` needs a daemon")),
    }
}

/// Refuses a command that needs a daemon if a store was selected.
pub(crate) fn needs_daemon(session: &CliSession<'_>, why: &str) -> Result<(), CliError> {
    match daemon_target(session, CommandSubject::Jobs)? {
        DaemonTarget::Store(named) => Err(no_daemon(&named, why)),
        DaemonTarget::Url { .. } | DaemonTarget::Data(_) => Ok(()),
    }
}

/// The tasks that a worker uses.
#[derive(Debug, Clone)]
pub enum TaskStorePlace {
    /// Those of a daemon.
    Daemon(CallerOptions),
    /// Those of a shared store, given by its URL and the option or variable that names it.
    Store { origin: &'static str, url: String },
}

/// Finds the tasks that a worker uses. Sends nothing yet.
pub fn task_store_place(session: &CliSession<'_>) -> Result<TaskStorePlace, CliError> {
    match daemon_target(session, CommandSubject::Tasks)? {
        DaemonTarget::Store(named) => Ok(TaskStorePlace::Store { origin: named.origin, url: named.url.to_owned() }),
        DaemonTarget::Url { .. } | DaemonTarget::Data(_) => {
            Ok(TaskStorePlace::Daemon(RemoteDaemon::find_for(session, CommandSubject::Tasks)?.client.caller().clone()))
        }
    }
}

/// Where a command is sent.
enum DaemonTarget<'a> {
    /// The daemon at a URL; `dir` is the data directory that would be used without it.
    Url { address: DaemonAddress, dir: Option<&'a Path> },
    /// The daemon of a data directory.
    Data(&'a Path),
    /// A store, without a daemon.
    Store(NamedStore<'a>),
}

/// Options take precedence over environment variables, and `CRONHOLD_URL` over `CRONHOLD_STORE`, which may be set for
/// `cronhold up`. SideJob's variables come last, but before the default data directory, which names no daemon by itself.
fn daemon_target<'a>(session: &CliSession<'a>, subject: CommandSubject) -> Result<DaemonTarget<'a>, CliError> {
    let (place, around) = (session.place, session.surroundings);
    let is_daemon = place.url.is_some() || place.data.is_some();
    match (&place.store, &around.store) {
        (Some(_), _) if is_daemon => {
            let message = "--store cannot be used with --url or --data";
            return Err(CliError::usage(
                message,
                "use --store to access a store directly, or --url or --data to select a daemon",
            ));
        }
        (Some(url), _) => return Ok(DaemonTarget::Store(NamedStore { origin: "--store", url })),
        (None, Some(url)) if !is_daemon && around.url.is_none() => {
            return Ok(DaemonTarget::Store(NamedStore { origin: "CRONHOLD_STORE", url }));
        }
        _ => {}
    }
    if subject == CommandSubject::Tasks
        && !is_daemon
        && around.url.is_none()
        && let Some(SidejobStore { origin, url }) = &around.sidejob
    {
        return Ok(DaemonTarget::Store(NamedStore { origin, url }));
    }
    let url = match (&place.url, &place.data) {
        (Some(url), _) => Some(("--url", url)),
        (None, Some(_)) => None,
        (None, None) => around.url.as_ref().map(|url| ("CRONHOLD_URL", url)),
    };
    let dir = place.data.as_deref().or(around.data.as_deref());
    match url {
        Some((flag, url)) => Ok(DaemonTarget::Url { address: parse(flag, url)?, dir }),
        None => dir.map(DaemonTarget::Data).ok_or_else(nowhere),
    }
}

/// The daemon of a data directory, if the directory says that it listens at an address. Commands never send the token in
/// the directory there, because another program may listen at the address of a daemon that was killed.
fn daemon_of(dir: &Path, address: &DaemonAddress) -> Option<DaemonFiles> {
    read_address_file(dir).ok().filter(|file| DaemonAddress::parse(&file.url).as_ref() == Ok(address))
}

fn found_locally(
    dir: &Path,
    file: &DaemonFiles,
    address: DaemonAddress,
    user: Option<String>,
) -> (CallerOptions, DaemonLookup) {
    let caller = CallerOptions { address, local: Some(dir.to_owned()), token: None, user };
    (caller, DaemonLookup::Data { dir: dir.to_owned(), pid: file.pid })
}

fn read_token(dir: &Path) -> Option<String> {
    let text = fs::read_to_string(dir.join(TOKEN)).ok()?;
    Some(text.trim().to_owned()).filter(|token| !token.is_empty())
}

fn read_address_file(dir: &Path) -> Result<DaemonFiles, CliError> {
    let file = dir.join(ADDRESS);
    let text = fs::read_to_string(&file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => unreachable(format!("no daemon is running in {}", dir.display()), start(dir)),
        _ => unreachable(format!("cannot read {}: {error}", file.display()), "run the command as the daemon's user"),
    })?;
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("invalid address file {}: {error}", file.display());
        unreachable(message, "restart the daemon, which rewrites the file")
    })
}

fn parse(origin: &str, url: &str) -> Result<DaemonAddress, CliError> {
    DaemonAddress::parse(url).map_err(|error| CliError::usage(format!("{origin}: {}", error.message), error.hint))
}

/// Whether a process is known to have ended. Without `/proc` this is unknown, and the result is `false`.
fn has_died(pid: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new("/proc").join(pid.to_string()).exists()
}

fn no_daemon(named: &NamedStore<'_>, why: &str) -> CliError {
    let hint = "select a daemon with --data or --url";
    CliError::refused(format!("{why}, and {} selects a store without one", named.origin), hint)
}

fn start(dir: &Path) -> String {
    format!("`cronhold up --data {}` starts one", shortened(&dir.display().to_string()))
}

fn nowhere() -> CliError {
    let message = "cannot find a daemon: none of CRONHOLD_DATA, XDG_DATA_HOME and HOME is set";
    unreachable(message.to_owned(), "pass its data directory with --data, or its URL with --url")
}

fn unreachable(message: String, hint: impl Into<String>) -> CliError {
    CliError::Unreachable { message, hint: Some(hint.into()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cronhold_schedule::{Instant, ZoneRegistry};

    use super::*;
    use crate::{ForeignJob, StoreServer};

    /// Serves every store at the same address.
    #[derive(Debug)]
    struct AllStores;

    impl StoreServer for AllStores {
        fn serve(&self, named: &NamedStore<'_>) -> Result<ServedStore, CliError> {
            Ok(ServedStore { url: "http://127.0.0.1:9".to_owned(), token: format!("{}={}", named.origin, named.url) })
        }

        fn cronken_jobs(&self, _: &NamedStore<'_>, _: bool) -> Result<Vec<ForeignJob>, CliError> {
            Ok(Vec::new())
        }

        fn castle_jobs(&self, _: &NamedStore<'_>) -> Result<Vec<ForeignJob>, CliError> {
            Ok(Vec::new())
        }
    }

    /// A data directory with the address and the token of a daemon. It is deleted on drop.
    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str, port: u16) -> Self {
            let path = std::env::temp_dir().join(format!("cronhold-remote-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a directory");
            let address = format!(r#"{{"url": "http://127.0.0.1:{port}", "pid": 1, "since": "2026-01-01T00:00:00Z"}}"#);
            fs::write(path.join(ADDRESS), address).expect("written");
            fs::write(path.join(TOKEN), format!("{name}\n")).expect("written");
            Self(path)
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// The name that a directory was created with.
    fn dir_name(dir: &Path) -> String {
        fs::read_to_string(dir.join(TOKEN)).expect("there").trim().to_owned()
    }

    /// Which daemon is found, and how: by its socket, or with a token.
    fn found(place: &DaemonFlags, surroundings: &CliEnv) -> String {
        let zones = Arc::new(ZoneRegistry::bundled());
        let session = CliSession {
            now: Instant::EPOCH,
            zones: &zones,
            colours: false,
            is_terminal: false,
            progress: false,
            place,
            surroundings,
            stores: &AllStores,
            prompt: None,
            end_with_reader: || (),
        };
        match RemoteDaemon::find(&session) {
            Ok(remote) => {
                let CallerOptions { address, local, token, .. } = remote.client.caller();
                let local = local.as_deref().map(|dir| format!("socket of {}", dir_name(dir)));
                format!("{address} {}", local.or_else(|| token.clone()).unwrap_or_else(|| "-".to_owned()))
            }
            Err(failure) => format!("exit {}", failure.exit().code()),
        }
    }

    #[test]
    fn options_take_precedence_over_environment() {
        let (typed, usual) = (Dir::new("typed", 1), Dir::new("usual", 2));
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        for (data, url, env_url, env_token, expected) in [
            ("", "", "", "", "http://127.0.0.1:2 socket of usual"),
            ("", "", "", "mine", "http://127.0.0.1:2 socket of usual"),
            ("typed", "", "", "", "http://127.0.0.1:1 socket of typed"),
            ("typed", "", "http://127.0.0.1:3", "mine", "http://127.0.0.1:1 socket of typed"),
            ("", "", "http://127.0.0.1:3", "mine", "http://127.0.0.1:3 mine"),
            ("", "http://127.0.0.1:4", "http://127.0.0.1:3", "mine", "http://127.0.0.1:4 mine"),
            // The token of a data directory is never sent.
            ("", "http://127.0.0.1:4", "", "", "http://127.0.0.1:4 -"),
            ("typed", "http://127.0.0.1:2", "", "", "http://127.0.0.1:2 -"),
            ("", "http://127.0.0.1:2/", "", "", "http://127.0.0.1:2 socket of usual"),
            ("nowhere", "", "", "mine", "exit 3"),
            ("", "127.0.0.1:2", "", "", "exit 2"),
        ] {
            let dirs = |name: &str| match name {
                "" => None,
                "typed" => Some(typed.0.clone()),
                other => Some(PathBuf::from("/").join(other)),
            };
            let place = DaemonFlags { data: dirs(data), url: text(url), store: None };
            let data_dir = Some(usual.0.clone());
            let (env, token) = (text(env_url), text(env_token));
            let around = CliEnv { data: data_dir, url: env, token, ..CliEnv::default() };
            assert_eq!(found(&place, &around), expected, "--data {data} --url {url} {env_url} {env_token}");
        }
        assert_eq!(found(&DaemonFlags::default(), &CliEnv::default()), "exit 3");
    }

    #[test]
    fn store_is_used_if_no_daemon_is_named() {
        let usual = Dir::new("beside-store", 2);
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        for (store, url, data, env_store, env_url, expected) in [
            ("redis://a", "", "", "", "", "http://127.0.0.1:9 --store=redis://a"),
            ("redis://a", "", "", "redis://b", "http://127.0.0.1:3", "http://127.0.0.1:9 --store=redis://a"),
            ("", "", "", "redis://b", "", "http://127.0.0.1:9 CRONHOLD_STORE=redis://b"),
            // A named daemon takes precedence over a store in the environment.
            ("", "", "", "redis://b", "http://127.0.0.1:3", "http://127.0.0.1:3 -"),
            ("", "http://127.0.0.1:4", "", "redis://b", "", "http://127.0.0.1:4 -"),
            ("", "", "beside", "redis://b", "", "http://127.0.0.1:2 socket of beside-store"),
            ("redis://a", "http://127.0.0.1:4", "", "", "", "exit 2"),
            ("redis://a", "", "beside", "", "", "exit 2"),
        ] {
            let data = text(data).map(|_| usual.0.clone());
            let place = DaemonFlags { data, url: text(url), store: text(store) };
            let data = Some(usual.0.clone());
            let (store, url) = (text(env_store), text(env_url));
            let around = CliEnv { data, url, store, ..CliEnv::default() };
            assert_eq!(found(&place, &around), expected, "{place:?} {env_store} {env_url}");
        }
    }

    /// What commands about tasks use if SideJob's variables are set.
    #[test]
    fn variables_of_sidejob_come_last_and_only_for_tasks() {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        for (subject, store, url, env_store, env_url, expected) in [
            (CommandSubject::Tasks, "", "", "", "", "SIDEJOB_URL redis://s"),
            (CommandSubject::Jobs, "", "", "", "", "data"),
            (CommandSubject::Tasks, "redis://a", "", "", "", "--store redis://a"),
            (CommandSubject::Tasks, "", "http://127.0.0.1:4", "", "", "url"),
            (CommandSubject::Tasks, "", "", "redis://b", "", "CRONHOLD_STORE redis://b"),
            (CommandSubject::Tasks, "", "", "", "http://127.0.0.1:3", "url"),
        ] {
            let place = DaemonFlags { data: None, url: text(url), store: text(store) };
            let sidejob = Some(SidejobStore { origin: "SIDEJOB_URL", url: "redis://s".to_owned() });
            let (data, store, url) = (Some(PathBuf::from("usual")), text(env_store), text(env_url));
            let surroundings = CliEnv { data, store, url, sidejob, ..CliEnv::default() };
            let zones = Arc::new(ZoneRegistry::bundled());
            let session = CliSession {
                now: Instant::EPOCH,
                zones: &zones,
                colours: false,
                is_terminal: false,
                progress: false,
                place: &place,
                surroundings: &surroundings,
                stores: &AllStores,
                prompt: None,
                end_with_reader: || (),
            };
            let found = match daemon_target(&session, subject).expect("something is named") {
                DaemonTarget::Store(named) => format!("{} {}", named.origin, named.url),
                DaemonTarget::Url { .. } => "url".to_owned(),
                DaemonTarget::Data(_) => "data".to_owned(),
            };
            assert_eq!(found, expected, "{subject:?} {place:?} {surroundings:?}");
        }
    }

    #[test]
    fn command_that_needs_daemon_is_refused_with_store() {
        let place = DaemonFlags { store: Some("redis://a".to_owned()), ..DaemonFlags::default() };
        let session = CliSession {
            now: Instant::EPOCH,
            zones: &Arc::new(ZoneRegistry::bundled()),
            colours: false,
            is_terminal: false,
            progress: false,
            place: &place,
            surroundings: &CliEnv::default(),
            stores: &crate::NoStoreServer,
            prompt: None,
            end_with_reader: || (),
        };
        let Err(CliError::Refused { message, hint }) = needs_daemon(&session, "`cronhold reload` needs a daemon")
        else {
            panic!("it must be refused")
        };
        assert_eq!(message, "`cronhold reload` needs a daemon, and --store selects a store without one");
        assert!(hint.is_some_and(|hint| hint.contains("--url")));
        assert!(RemoteDaemon::find(&session).is_err(), "there are no stores here");
    }
}

//! The daemon, as the verbs that need one see it: where it is, how it is asked, and what its refusals mean to people.
//! One place, so that every verb finds the same daemon and fails in the same words. A store that is worked on without a
//! daemon looks the same from here: the binary answers for it in the place of one.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use cronhold_api::Code;
use cronhold_api::client::{Address, CallError, Caller, Client, JobFilter};
use cronhold_core::RunId;
use cronhold_schedule::text::{did_you_mean, shortened};
use serde::Deserialize;

use crate::{Failure, NamedStore, Session};

/// The file in which a daemon says where it listens.
const ADDRESS: &str = "address";
/// The file that holds the token of whoever may read it.
const TOKEN: &str = "token";

/// Which daemon is meant, as the command line says.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Finding the daemon")]
pub struct Place {
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

/// What the process that asks knows of daemons and of itself. The binary reads it from the environment.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The directory of a daemon that was not told another one: `CRONHOLD_DATA`, or the usual one.
    pub data: Option<PathBuf>,
    /// `CRONHOLD_URL`.
    pub url: Option<String>,
    /// `CRONHOLD_STORE`, when it names a store that can be worked on without a daemon.
    pub store: Option<String>,
    /// `CRONHOLD_TOKEN`.
    pub token: Option<String>,
    /// Who asks.
    pub user: Option<String>,
}

/// What a daemon writes of itself.
#[derive(Debug, Deserialize)]
struct Said {
    url: String,
    pid: u32,
}

/// How the daemon was found, for what is said when it does not answer.
#[derive(Debug)]
enum Way {
    /// By its address.
    Url,
    /// By its directory.
    Data { dir: PathBuf, pid: u32 },
    /// It is none: this process answers for a store.
    Store,
}

/// The daemon that a verb asks.
#[derive(Debug)]
pub(crate) struct Remote<'a> {
    /// What the verb needs from its process.
    pub(crate) session: &'a Session<'a>,
    /// What it asks with.
    pub(crate) client: Client,
    token: Option<String>,
    way: Way,
}

impl<'a> Remote<'a> {
    /// Finds the daemon that is meant. Nothing is sent yet.
    pub(crate) fn find(session: &'a Session<'a>) -> Result<Self, Failure> {
        let around = session.surroundings;
        let (address, token, way) = match meant(session)? {
            Meant::Url { address, dir } => {
                let token = token_for(&address, dir, around);
                (address, token, Way::Url)
            }
            Meant::Data(dir) => {
                let said = said(dir)?;
                let address = parse(&format!("{}", dir.join(ADDRESS).display()), &said.url)?;
                (address, token_in(dir, around), Way::Data { dir: dir.to_owned(), pid: said.pid })
            }
            Meant::Store(named) => {
                let served = session.stores.serve(&named)?;
                (parse(named.origin, &served.url)?, Some(served.token), Way::Store)
            }
        };
        let caller = Caller { address, token: token.clone(), user: around.user.clone() };
        let client = Client::new(caller).map_err(|error| unreachable(error.to_string(), "try again"))?;
        Ok(Self { session, client, token, way })
    }

    /// What went wrong with a request, for people.
    pub(crate) fn failure(&self, error: CallError) -> Failure {
        match error {
            CallError::Unreachable(message) => unreachable(message, self.hint_when_away()),
            CallError::Broken(message) => unreachable(message, self.hint_when_strange()),
            CallError::Problem(problem) => match (problem.code, &self.way) {
                (Code::Unavailable, _) => Failure::Unreachable { message: problem.detail, hint: problem.hint },
                (Code::Unauthorized, Way::Data { dir, .. }) if self.token.is_none() => {
                    let file = dir.join(TOKEN);
                    unreachable(problem.detail, format!("{} cannot be read: ask as the daemon's user", file.display()))
                }
                (Code::Unauthorized, Way::Data { .. }) => unreachable(problem.detail, self.hint_when_strange()),
                (Code::Unauthorized, Way::Url | Way::Store) => {
                    let hint = "set CRONHOLD_TOKEN; `cronhold token show` on the daemon's machine shows the token";
                    Failure::refused(problem.detail, hint)
                }
                _ => Failure::Refused { message: problem.detail, hint: problem.hint },
            },
        }
    }

    /// The same for a request about a job, or about a run that was named by its job: when there is none of that name,
    /// the one that may have been meant is named.
    pub(crate) fn failure_about(&self, name: &str, error: CallError) -> Failure {
        // An id says nothing of a job.
        let is_id = RunId::parse(name).is_ok();
        let is_unknown = !is_id && error.problem().is_some_and(|problem| problem.code == Code::NotFound);
        let failure = self.failure(error);
        let job = name.split_once('#').map_or(name, |(job, _)| job);
        match failure {
            Failure::Refused { message, hint } if is_unknown => {
                Failure::Refused { message, hint: self.meant(job).or(hint) }
            }
            other => other,
        }
    }

    /// What to do about a job that is not there.
    fn meant(&self, job: &str) -> Option<String> {
        let all = self.client.jobs(&JobFilter::default()).ok()?;
        let mut ids = all.jobs.iter().map(|job| job.id.as_str());
        if ids.clone().any(|id| id == job) {
            // The job is there, so that it is something else that is missing.
            return None;
        }
        // A name without its folder is what people remember.
        let end = format!("/{job}");
        let last = |id: &'_ str| id.rsplit('/').next().map(str::to_owned).unwrap_or_default();
        let near = ids.clone().find(|id| id.ends_with(&end)).or_else(|| did_you_mean(job, ids.clone())).or_else(|| {
            let names: Vec<String> = ids.clone().map(last).collect();
            let near = did_you_mean(job, names.iter().map(String::as_str))?;
            ids.clone().find(|id| last(id) == near)
        });
        Some(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if ids.next().is_none() => "there are no jobs yet; `cronhold add` makes one".to_owned(),
            None => "`cronhold list` shows all jobs".to_owned(),
        })
    }

    fn hint_when_away(&self) -> String {
        match &self.way {
            Way::Url => "look whether the daemon runs there, and at the address".to_owned(),
            Way::Store => "try again".to_owned(),
            Way::Data { dir, pid } if has_died(*pid) => {
                format!("the daemon that wrote its address there (pid {pid}) has died; {}", start(dir))
            }
            Way::Data { dir, pid } => {
                format!("pid {pid} wrote that address in {}; if the daemon has ended, {}", dir.display(), start(dir))
            }
        }
    }

    fn hint_when_strange(&self) -> String {
        match &self.way {
            Way::Url => "look at the address: something else may listen there".to_owned(),
            Way::Store => "try again".to_owned(),
            Way::Data { dir, pid } if has_died(*pid) => {
                let dir_shown = dir.display();
                format!(
                    "the daemon of {dir_shown} (pid {pid}) has died, and something else listens there; {}",
                    start(dir)
                )
            }
            Way::Data { dir, .. } => {
                format!(
                    "the daemon of {} may have ended, and another one taken its place; {}",
                    dir.display(),
                    start(dir)
                )
            }
        }
    }
}

/// The token with which the daemon that is meant would be asked. It need not run.
pub(crate) fn token(session: &Session<'_>) -> Result<String, Failure> {
    let around = session.surroundings;
    match meant(session)? {
        Meant::Url { address, dir } => token_for(&address, dir, around).ok_or_else(|| {
            let hint = "set CRONHOLD_TOKEN; `cronhold token show` on the daemon's machine shows the token";
            Failure::refused(format!("no token of the daemon at {address} is known"), hint)
        }),
        Meant::Data(dir) => token_in(dir, around).ok_or_else(|| {
            let file = dir.join(TOKEN);
            let hint = if file.exists() {
                "ask as the daemon's user".to_owned()
            } else {
                format!("a daemon makes it at its first start; {}", start(dir))
            };
            Failure::refused(format!("there is no token to read in {}", file.display()), hint)
        }),
        Meant::Store(named) => Err(no_daemon(&named, "a token is what a daemon asks for")),
    }
}

/// Refuses what a daemon alone can do, when a store is meant.
pub(crate) fn needs_daemon(session: &Session<'_>, why: &str) -> Result<(), Failure> {
    match meant(session)? {
        Meant::Store(named) => Err(no_daemon(&named, why)),
        Meant::Url { .. } | Meant::Data(_) => Ok(()),
    }
}

/// Which daemon is meant.
enum Meant<'a> {
    /// The one at an address; and the directory of the one that would be meant without it.
    Url { address: Address, dir: Option<&'a Path> },
    /// The one with a directory.
    Data(&'a Path),
    /// None: a store itself.
    Store(NamedStore<'a>),
}

/// What is typed counts more than what the environment says, and there a daemon's address more than a store, which may
/// stand there for daemons that are started.
fn meant<'a>(session: &Session<'a>) -> Result<Meant<'a>, Failure> {
    let (place, around) = (session.place, session.surroundings);
    let is_daemon = place.url.is_some() || place.data.is_some();
    match (&place.store, &around.store) {
        (Some(_), _) if is_daemon => {
            let message = "a store is worked on without a daemon, and --url and --data name one";
            return Err(Failure::usage(message, "give either --store, or one of --url and --data"));
        }
        (Some(url), _) => return Ok(Meant::Store(NamedStore { origin: "--store", url })),
        (None, Some(url)) if !is_daemon && around.url.is_none() => {
            return Ok(Meant::Store(NamedStore { origin: "CRONHOLD_STORE", url }));
        }
        _ => {}
    }
    let url = match (&place.url, &place.data) {
        (Some(url), _) => Some(("--url", url)),
        (None, Some(_)) => None,
        (None, None) => around.url.as_ref().map(|url| ("CRONHOLD_URL", url)),
    };
    let dir = place.data.as_deref().or(around.data.as_deref());
    match url {
        Some((flag, url)) => Ok(Meant::Url { address: parse(flag, url)?, dir }),
        None => dir.map(Meant::Data).ok_or_else(nowhere),
    }
}

/// The token for the daemon at an address. One from a directory goes to nobody but the daemon that it is of.
fn token_for(address: &Address, dir: Option<&Path>, around: &Surroundings) -> Option<String> {
    let is_own = |dir: &&Path| said(dir).is_ok_and(|said| Address::parse(&said.url).as_ref() == Ok(address));
    around.token.clone().or_else(|| read_token(dir.filter(is_own)?))
}

/// The token for the daemon with a directory.
fn token_in(dir: &Path, around: &Surroundings) -> Option<String> {
    read_token(dir).or_else(|| around.token.clone())
}

fn read_token(dir: &Path) -> Option<String> {
    let text = fs::read_to_string(dir.join(TOKEN)).ok()?;
    Some(text.trim().to_owned()).filter(|token| !token.is_empty())
}

fn said(dir: &Path) -> Result<Said, Failure> {
    let file = dir.join(ADDRESS);
    let text = fs::read_to_string(&file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => unreachable(format!("no daemon runs with {}", dir.display()), start(dir)),
        _ => unreachable(format!("{} cannot be read: {error}", file.display()), "ask as the daemon's user"),
    })?;
    serde_json::from_str(&text).map_err(|error| {
        let message = format!("{} is no address of a daemon: {error}", file.display());
        unreachable(message, "restart the daemon: it writes the file anew")
    })
}

fn parse(origin: &str, url: &str) -> Result<Address, Failure> {
    Address::parse(url).map_err(|error| Failure::usage(format!("{origin}: {}", error.message), error.hint))
}

/// Whether a process is known to be gone. Where the system does not tell, it is not.
fn has_died(pid: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new("/proc").join(pid.to_string()).exists()
}

fn no_daemon(named: &NamedStore<'_>, why: &str) -> Failure {
    let hint = "ask a daemon: name it with --data or --url";
    Failure::refused(format!("{why}, and with {} there is none", named.origin), hint)
}

fn start(dir: &Path) -> String {
    format!("`cronhold up --data {}` starts one", shortened(&dir.display().to_string()))
}

fn nowhere() -> Failure {
    let message = "no daemon is known: none of CRONHOLD_DATA, XDG_DATA_HOME and HOME is set";
    unreachable(message.to_owned(), "give the daemon's directory with --data, or its address with --url")
}

fn unreachable(message: String, hint: impl Into<String>) -> Failure {
    Failure::Unreachable { message, hint: Some(hint.into()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cronhold_schedule::{Instant, Zones};

    use super::*;
    use crate::{ForeignJob, Served, Stores};

    /// Answers for every store at the same address.
    #[derive(Debug)]
    struct AllStores;

    impl Stores for AllStores {
        fn serve(&self, named: &NamedStore<'_>) -> Result<Served, Failure> {
            Ok(Served { url: "http://127.0.0.1:9".to_owned(), token: format!("{}={}", named.origin, named.url) })
        }

        fn cronken_jobs(&self, _: &NamedStore<'_>, _: bool) -> Result<Vec<ForeignJob>, Failure> {
            Ok(Vec::new())
        }
    }

    /// A directory that says where a daemon listens and what its token is, and vanishes at the end.
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

    /// Which daemon is found, and with which token it is asked.
    fn found(place: &Place, surroundings: &Surroundings) -> String {
        let zones = Arc::new(Zones::bundled());
        let session = Session {
            now: Instant::EPOCH,
            zones: &zones,
            colours: false,
            progress: false,
            place,
            surroundings,
            stores: &AllStores,
            end_with_reader: || (),
        };
        match Remote::find(&session) {
            Ok(remote) => format!("{} {}", remote.client.address(), remote.token.as_deref().unwrap_or("-")),
            Err(failure) => format!("exit {}", failure.exit().code()),
        }
    }

    #[test]
    fn what_is_typed_counts_more_than_the_environment() {
        let (typed, usual) = (Dir::new("typed", 1), Dir::new("usual", 2));
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        for (data, url, env_url, env_token, expected) in [
            ("", "", "", "", "http://127.0.0.1:2 usual"),
            ("", "", "", "mine", "http://127.0.0.1:2 usual"),
            ("typed", "", "", "", "http://127.0.0.1:1 typed"),
            ("typed", "", "http://127.0.0.1:3", "mine", "http://127.0.0.1:1 typed"),
            ("", "", "http://127.0.0.1:3", "mine", "http://127.0.0.1:3 mine"),
            ("", "http://127.0.0.1:4", "http://127.0.0.1:3", "mine", "http://127.0.0.1:4 mine"),
            // A token goes to nobody but the daemon that it is of.
            ("", "http://127.0.0.1:4", "", "", "http://127.0.0.1:4 -"),
            ("typed", "http://127.0.0.1:2", "", "", "http://127.0.0.1:2 -"),
            ("", "http://127.0.0.1:2/", "", "", "http://127.0.0.1:2 usual"),
            ("nowhere", "", "", "mine", "exit 3"),
            ("", "127.0.0.1:2", "", "", "exit 2"),
        ] {
            let dirs = |name: &str| match name {
                "" => None,
                "typed" => Some(typed.0.clone()),
                other => Some(PathBuf::from("/").join(other)),
            };
            let place = Place { data: dirs(data), url: text(url), store: None };
            let data_dir = Some(usual.0.clone());
            let (env, token) = (text(env_url), text(env_token));
            let around = Surroundings { data: data_dir, url: env, token, ..Surroundings::default() };
            assert_eq!(found(&place, &around), expected, "--data {data} --url {url} {env_url} {env_token}");
        }
        assert_eq!(found(&Place::default(), &Surroundings::default()), "exit 3");
    }

    #[test]
    fn a_store_is_meant_where_no_daemon_is_named() {
        let usual = Dir::new("beside-store", 2);
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        for (store, url, data, env_store, env_url, expected) in [
            ("redis://a", "", "", "", "", "http://127.0.0.1:9 --store=redis://a"),
            ("redis://a", "", "", "redis://b", "http://127.0.0.1:3", "http://127.0.0.1:9 --store=redis://a"),
            ("", "", "", "redis://b", "", "http://127.0.0.1:9 CRONHOLD_STORE=redis://b"),
            // A daemon that is named is asked, also where a store stands in the environment for those who start one.
            ("", "", "", "redis://b", "http://127.0.0.1:3", "http://127.0.0.1:3 -"),
            ("", "http://127.0.0.1:4", "", "redis://b", "", "http://127.0.0.1:4 -"),
            ("", "", "beside", "redis://b", "", "http://127.0.0.1:2 beside-store"),
            ("redis://a", "http://127.0.0.1:4", "", "", "", "exit 2"),
            ("redis://a", "", "beside", "", "", "exit 2"),
        ] {
            let data = text(data).map(|_| usual.0.clone());
            let place = Place { data, url: text(url), store: text(store) };
            let data = Some(usual.0.clone());
            let (store, url) = (text(env_store), text(env_url));
            let around = Surroundings { data, url, store, ..Surroundings::default() };
            assert_eq!(found(&place, &around), expected, "{place:?} {env_store} {env_url}");
        }
    }

    #[test]
    fn what_a_daemon_alone_can_do_is_refused_for_a_store() {
        let place = Place { store: Some("redis://a".to_owned()), ..Place::default() };
        let session = Session {
            now: Instant::EPOCH,
            zones: &Arc::new(Zones::bundled()),
            colours: false,
            progress: false,
            place: &place,
            surroundings: &Surroundings::default(),
            stores: &crate::NoStores,
            end_with_reader: || (),
        };
        let Err(Failure::Refused { message, hint }) = needs_daemon(&session, "job files are read by daemons") else {
            panic!("it must be refused")
        };
        assert_eq!(message, "job files are read by daemons, and with --store there is none");
        assert!(hint.is_some_and(|hint| hint.contains("--url")));
        assert!(Remote::find(&session).is_err(), "there are no stores here");
    }
}

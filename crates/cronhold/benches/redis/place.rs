//! One Redis for all measurements, with nodes of either side and the same jobs in Cronken's format.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cronhold_daemon::clock::SystemClock;
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;
use cronhold_store_redis::testing::RedisServer;
use cronhold_wiring::StoreUrl;
use serde_json::{Map, Value, json};

use crate::processes::{end_keeper_of, eventually};
use crate::python::{PythonClient, PythonNode};
use crate::rig::{block_on, scratch};

/// The scheduler that runs the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Cronken,
    Cronhold,
}

/// Both sides, in the order of measurement.
pub(crate) const SIDES: [Side; 2] = [Side::Cronken, Side::Cronhold];

impl Side {
    /// The name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cronken => "Cronken",
            Self::Cronhold => "Cronhold",
        }
    }
}

/// The server, and a directory for nodes and the output of programs.
pub(crate) struct Place {
    pub(crate) server: RedisServer,
    pub(crate) dir: PathBuf,
    client: PythonClient,
}

impl Place {
    pub(crate) fn new() -> Self {
        let server = RedisServer::start();
        let client = PythonClient::start(server.port());
        Self { server, dir: scratch("redis"), client }
    }

    /// The URL of a store for a directory, in its own namespace.
    pub(crate) fn store_of(&self, dir: &Path) -> StoreUrl {
        let name = dir.file_name().expect("a directory has a name").to_string_lossy();
        let url = format!("redis://127.0.0.1:{}?namespace={{{name}}}", self.server.port());
        StoreUrl::parse(&url).expect("it is well formed")
    }

    /// Empties the server, and puts `many` jobs in Cronken's format. `cron_args` returns the schedule for a number.
    pub(crate) fn put_jobs(&mut self, many: usize, cmd: &str, lock: bool, cron_args: impl Fn(usize) -> Value) {
        self.server.cli(&["FLUSHALL"]);
        // A keeper that was killed may still be about to write.
        eventually("the directory is removed", || fs::remove_dir_all(&self.dir).is_ok());
        fs::create_dir_all(&self.dir).expect("a directory");
        let form = |number| json!({"cron_args": cron_args(number), "job_args": {"cmd": cmd, "lock": lock, "ttl": 10}});
        let jobs: Map<String, Value> = (0..many).map(|number| (format!("job-{number}"), form(number))).collect();
        // Redis refuses to write none.
        if !jobs.is_empty() {
            self.client.call("set_jobs", json!({"jobs": jobs}));
        }
    }

    /// The file in which programs record their starts.
    pub(crate) fn starts(&self) -> PathBuf {
        self.dir.join("starts")
    }

    /// Starts a node, and waits until it is ready. Both sides log only warnings and errors.
    pub(crate) fn start(&self, side: Side, name: &str) -> Node {
        let log = self.dir.join(format!("{name}.log"));
        match side {
            Side::Cronken => Node::Cronken(PythonNode::start(self.server.port(), &["--quiet", "--name", name], &log)),
            Side::Cronhold => Node::Cronhold(Daemon::start(self.server.port(), self.dir.join(name), name, &[])),
        }
    }

    /// A number from the INFO command of the server.
    pub(crate) fn info(&self, section: &str, field: &str) -> u64 {
        let text = self.server.cli(&["INFO", section]);
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        // The statistics of a command have several numbers. The first is the number of calls.
        let first = value.map(|value| value.trim().trim_start_matches("calls=").split(',').next().unwrap_or_default());
        first.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A node of either side. It is killed on drop.
pub(crate) enum Node {
    Cronken(PythonNode),
    Cronhold(Daemon),
}

impl Node {
    /// The pid of the node.
    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Cronken(node) => node.pid().as_raw_nonzero().get().unsigned_abs(),
            Self::Cronhold(daemon) => daemon.child.id(),
        }
    }
}

/// A real daemon. It is killed on drop, with its keeper and programs.
pub(crate) struct Daemon {
    child: Child,
    home: PathBuf,
}

impl Daemon {
    /// Starts a daemon with more options.
    pub(crate) fn start(port: u16, home: PathBuf, name: &str, args: &[&str]) -> Self {
        fs::create_dir_all(&home).expect("a directory");
        let log = home.join("log");
        let mut command = bare(&home);
        let store = format!("redis://127.0.0.1:{port}");
        command.args(["up", "--quiet", "--listen", "127.0.0.1:0", "--name", name, "--store", &store]).args(args);
        let child = command.stderr(File::create(&log).expect("a file")).spawn().expect("the binary starts");
        let daemon = Self { child, home };
        // With `--quiet` the daemon does not log that it is ready, so a command checks it.
        eventually("the daemon is ready", || daemon.run_json(&["nodes"]).is_some());
        daemon
    }

    /// Runs a command with `-o json`; `None` if it fails.
    pub(crate) fn run_json(&self, args: &[&str]) -> Option<Value> {
        let output = bare(&self.home).args(args).args(["-o", "json"]).output().expect("the binary starts");
        serde_json::from_slice(&output.stdout).ok()
    }
}

impl Drop for Daemon {
    /// Kills the daemon, the keeper and its programs with SIGKILL.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        end_keeper_of(&self.home);
    }
}

/// The binary, without the environment of the benchmark.
fn bare(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronhold"));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("CRONHOLD_DATA", home).stdin(Stdio::null());
    command
}

/// Sleeps.
pub(crate) fn rest(span: Span) {
    block_on(async { SystemClock::new().expect("a timer").sleep(span).await });
}

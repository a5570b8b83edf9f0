//! One Redis for all measurements, with nodes of either side and the same jobs in Cronken's format.

use std::fs;
use std::path::{Path, PathBuf};

use cronhold_store_redis::testing::RedisServer;
use cronhold_wiring::StoreUrl;
use serde_json::{Map, Value, json};

pub(crate) use crate::daemons::{Daemon, rest};
use crate::processes::eventually;
use crate::python::{PythonClient, PythonNode};
use crate::rig::scratch;

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
            Side::Cronhold => Node::Cronhold(Daemon::start(&self.server.url(), self.dir.join(name), name, &[])),
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
            Self::Cronhold(daemon) => daemon.pid(),
        }
    }
}

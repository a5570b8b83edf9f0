//! One Redis with our nodes, Python nodes and a client of Cronken, in its own directory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cronhold_store_redis::testing::RedisServer;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};

use super::python::{PythonClient, PythonNode};
use crate::log_lines::find_event;
use crate::processes::{end_keeper_of, eventually};

/// Seconds between two heartbeats of a Python node whose runs are not reaped within a test.
pub(super) const RARELY: u32 = 30;

/// A Redis server, a client of Cronken, and a directory for nodes.
pub(super) struct MixedNodes {
    pub(super) client: PythonClient,
    dir: PathBuf,
    server: RedisServer,
}

impl MixedNodes {
    pub(super) fn new(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cronken-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a directory");
        let server = RedisServer::start();
        let client = PythonClient::start(server.port());
        Self { client, dir, server }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Starts a node of Python Cronken.
    pub(super) fn python(&self, name: &str, heartbeat_seconds: u32) -> PythonNode {
        let heartbeat = heartbeat_seconds.to_string();
        let options = ["--name", name, "--output", "1", "--heartbeat", &heartbeat];
        PythonNode::start(self.server.port(), &options, &self.path(&format!("{name}.log")))
    }

    /// The URL of the store with `peers=cronken`.
    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}?peers=cronken", self.server.port())
    }

    /// Starts a node of ours with `peers=cronken`, and waits until it is ready. `more` extends the query of the URL.
    pub(super) fn ours(&self, name: &str, more: &str) -> Node {
        let url = format!("{}{more}", self.url());
        let (home, log) = (self.path(name), self.path(&format!("{name}.log")));
        let mut command = bare(&home);
        command.args(["up", "--listen", "127.0.0.1:0", "--name", name, "--store", &url, "--log-format", "json"]);
        let child = command.stderr(File::create(&log).expect("a file")).spawn().expect("the binary starts");
        let node = Node { child, home, log };
        eventually("our node is ready", || node.has_logged("ready"));
        node
    }

    /// Sends an event with Cronken's own code.
    #[track_caller]
    pub(super) fn send(&mut self, action: &str, args: &Value) {
        self.client.call("send", json!({"event": {"action": action, "args": args}}));
    }

    /// The names in a file, grouped by the period in which each was written. Each line has a time in seconds and a
    /// name.
    pub(super) fn periods(&self, file: &str, seconds: u64) -> BTreeMap<u64, Vec<String>> {
        let text = fs::read_to_string(self.path(file)).unwrap_or_default();
        let mut periods: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let (time, who) = line.split_once(' ').expect("a time and a name");
            let second: u64 = time.split('.').next().and_then(|whole| whole.parse().ok()).expect("a time");
            periods.entry(second / seconds).or_default().push(who.to_owned());
        }
        periods
    }
}

impl Drop for MixedNodes {
    fn drop(&mut self) {
        // The directory of a failed test is kept for inspection.
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// A node of ours. It is killed on drop, with its keeper and programs.
pub(super) struct Node {
    child: Child,
    home: PathBuf,
    log: PathBuf,
}

impl Node {
    /// The text of its log.
    fn log_text(&self) -> String {
        fs::read_to_string(&self.log).expect("a log")
    }

    /// Whether an event is in its log.
    pub(super) fn has_logged(&self, event: &str) -> bool {
        self.log_text().lines().any(|line| find_event(line, event, &[]).is_some())
    }

    /// Sends a signal to the daemon.
    pub(super) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Sends SIGTERM, and waits until the daemon has exited with code 0.
    pub(super) fn stop(mut self) {
        self.send(Signal::TERM);
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {}", self.log_text());
    }

    /// Runs a command, which must succeed, and returns its standard output.
    #[track_caller]
    pub(super) fn done(&self, args: &[&str]) -> String {
        let output = bare(&self.home).args(args).output().expect("the binary starts");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Runs a command, which must exit with 1, and returns its standard output.
    #[track_caller]
    pub(super) fn refused(&self, args: &[&str]) -> String {
        let output = bare(&self.home).args(args).output().expect("the binary starts");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// Runs a command with `-o json`, and returns the parsed output.
    #[track_caller]
    pub(super) fn json(&self, args: &[&str]) -> Value {
        let text = self.done(&[args, &["-o", "json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"))
    }

    /// A job as `list` shows it; `None` if there is none.
    pub(super) fn job(&self, id: &str) -> Option<Value> {
        let list = self.json(&["list"]);
        list.as_array().expect("jobs").iter().find(|job| job["id"] == id).cloned()
    }

    /// All stored runs of a job, the latest first.
    pub(super) fn runs(&self, job: &str) -> Vec<Value> {
        self.json(&["runs", job]).as_array().expect("runs").clone()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        end_keeper_of(&self.home);
    }
}

/// Sends a signal to a Python node and its programs.
pub(super) fn signal(node: &PythonNode, signal: Signal) {
    kill_process_group(node.pid(), signal).expect("it runs");
}

/// The binary, without the environment of the test.
fn bare(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronhold"));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("USER", "ada").env("CRONHOLD_DATA", home);
    command.stdin(Stdio::null());
    command
}

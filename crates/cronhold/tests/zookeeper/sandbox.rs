//! A ZooKeeper server, nodes on it with their own data directories, and commands that use it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cronhold_store_zookeeper::testing::ZooKeeperServer;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::log_lines::find_event;
use crate::processes::{end_keeper_of, eventually};

/// A temporary directory with a ZooKeeper server.
pub(crate) struct ZooKeeperSandbox {
    dir: PathBuf,
    pub(crate) server: ZooKeeperServer,
}

/// The output of a command.
#[derive(Debug)]
pub(crate) struct VerbOutput {
    pub(crate) code: Option<i32>,
    /// The standard output, and then the standard error output.
    pub(crate) text: String,
}

impl ZooKeeperSandbox {
    pub(crate) fn new(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("zookeeper-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a directory");
        Self { dir, server: ZooKeeperServer::start() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn url(&self) -> String {
        format!("{}?timeout=4s", self.server.url("/castle-cron"))
    }

    /// The binary with arguments, without the environment of the test.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronhold"));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("USER", "ada").env("CRONHOLD_DATA", "nobody");
        command.current_dir(&self.dir).args(args).stdin(Stdio::null());
        command
    }

    /// Runs a command.
    pub(crate) fn run(&self, command: &mut Command) -> VerbOutput {
        let output = command.output().expect("the binary starts");
        let text = [output.stdout, output.stderr].concat();
        VerbOutput { code: output.status.code(), text: String::from_utf8_lossy(&text).into_owned() }
    }

    /// Runs a command on the store, without a daemon.
    pub(crate) fn at_store(&self, args: &[&str]) -> VerbOutput {
        self.run(&mut self.command(&[&["--store", &self.url()], args].concat()))
    }

    /// Runs a command on the store that must succeed, and returns its output.
    #[track_caller]
    pub(crate) fn done(&self, args: &[&str]) -> String {
        let output = self.at_store(args);
        assert_eq!(output.code, Some(0), "{args:?}: {output:?}");
        output.text
    }

    /// Runs a command on the store with `-o json`, and returns the parsed output.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let text = self.done(&[&args[..1], &["-o", "json"], &args[1..]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"))
    }

    /// Starts a node, and waits until it is ready.
    pub(crate) fn up(&self, name: &str) -> ZooKeeperNode {
        let log = self.path(&format!("{name}.log"));
        let mut node = ZooKeeperNode { home: self.path(name), name: name.to_owned(), log, child: None };
        self.start(&mut node);
        node
    }

    /// Starts a node that was killed.
    pub(crate) fn start(&self, node: &mut ZooKeeperNode) {
        let starts = node.count("ready");
        let up = ["up", "--name", &node.name, "--data", &node.name, "--listen", "127.0.0.1:0", "--log-format", "json"];
        let file = File::options().create(true).append(true).open(&node.log).expect("a file");
        let child = self.command(&up).env("CRONHOLD_STORE", self.url()).stderr(file).spawn();
        node.child = Some(child.expect("the binary starts"));
        eventually(&format!("{} is ready", node.name), || node.count("ready") > starts);
    }
}

impl Drop for ZooKeeperSandbox {
    fn drop(&mut self) {
        // The directory of a failed test is kept for inspection.
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// A node. It is killed on drop, with its keeper and programs.
pub(crate) struct ZooKeeperNode {
    name: String,
    home: PathBuf,
    log: PathBuf,
    child: Option<Child>,
}

impl ZooKeeperNode {
    /// How often an event is in the log.
    pub(crate) fn count(&self, event: &str) -> usize {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().filter(|line| find_event(line, event, &[]).is_some()).count()
    }

    /// Whether an event with these fields is in the log.
    pub(crate) fn has_logged(&self, event: &str, fields: &[(&str, &str)]) -> bool {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().any(|line| find_event(line, event, fields).is_some())
    }

    /// Sends a signal to the daemon. Its keeper keeps running.
    pub(crate) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child.as_ref().expect("it was started")), signal).expect("it runs");
    }

    /// Kills the daemon with SIGKILL. Its keeper keeps running.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Waits until the daemon has exited, and returns its exit code.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.child.take().expect("it was started").wait().expect("it ends").code()
    }
}

impl Drop for ZooKeeperNode {
    fn drop(&mut self) {
        self.kill();
        end_keeper_of(&self.home);
    }
}

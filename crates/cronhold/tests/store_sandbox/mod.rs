//! A store that several nodes share, nodes on it with their own data directories, and commands that use it. The tests of
//! each kind of store include this file as a module, and say what serves their stores.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::log_lines::find_event;
use crate::processes::{end_keeper_of, eventually};
use crate::server::TestServer;

/// What serves the stores of a sandbox.
pub(crate) trait SandboxServer {
    /// The name in the names of directories.
    const NAME: &'static str;

    /// The URL of the store.
    fn store_url(&self) -> String;
}

/// A temporary directory with a server.
pub(crate) struct Sandbox<S: SandboxServer = TestServer> {
    dir: PathBuf,
    pub(crate) server: S,
}

impl<S: SandboxServer> Sandbox<S> {
    /// Creates the directory of a test.
    pub(crate) fn on(name: &str, server: S) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}-{}", S::NAME, std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a directory");
        Self { dir, server }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes a file.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let file = self.path(name);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, text).expect("written");
    }

    /// The binary with arguments. It does not inherit the environment of the test, and finds no daemon.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        bare(&self.dir, args)
    }

    /// Runs a command.
    pub(crate) fn run_command(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::new(args, &self.command(args).output().expect("the binary starts"))
    }

    /// Runs a command on the store, without a daemon.
    pub(crate) fn at_store(&self, args: &[&str]) -> CommandOutput {
        self.run_command(&[&["--store", &self.server.store_url()], args].concat())
    }

    /// Runs a command on the store that must succeed, and returns its standard output.
    #[track_caller]
    pub(crate) fn done(&self, args: &[&str]) -> String {
        self.at_store(args).exits(0).out
    }

    /// Runs a command on the store with `-o json`, and returns the parsed output.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        // Arguments after the schedule of `add` belong to the program, so the option goes first.
        let text = self.done(&[&args[..1], &["-o", "json"], &args[1..]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"))
    }

    /// Waits until a run is in a state.
    pub(crate) fn wait_for(&self, run: &str, state: &str) {
        eventually(&format!("{run} is {state}"), || self.json(&["runs", run])[0]["state"] == state);
    }

    /// Starts a node, and waits until it is ready.
    pub(crate) fn up(&self, name: &str, options: &[&str]) -> Node {
        let node = self.start(name, options);
        node.wait_until_ready();
        node
    }

    /// Starts a node on the store.
    pub(crate) fn start(&self, name: &str, options: &[&str]) -> Node {
        self.start_at(&self.server.store_url(), name, options)
    }

    /// Starts a node that uses the zone data in a directory, and waits until it is ready.
    pub(crate) fn up_with_zones(&self, zones: &str, name: &str, options: &[&str]) -> Node {
        let node = self.start_with(&self.server.store_url(), Some(self.path(zones)), name, options);
        node.wait_until_ready();
        node
    }

    /// Starts a node on a store with this URL.
    pub(crate) fn start_at(&self, url: &str, name: &str, options: &[&str]) -> Node {
        self.start_with(url, None, name, options)
    }

    fn start_with(&self, url: &str, zones: Option<PathBuf>, name: &str, options: &[&str]) -> Node {
        let up = ["up", "--name", name, "--data", name, "--listen", "127.0.0.1:0", "--log-format", "json"];
        let arguments: Vec<String> = up.iter().chain(options).map(|argument| (*argument).to_owned()).collect();
        let log = self.path(&format!("{name}.log"));
        let start = NodeStart { dir: self.dir.clone(), arguments, url: url.to_owned(), zones };
        let child = start.begin(&log);
        Node { child, start, home: self.path(name), log }
    }
}

impl<S: SandboxServer> Drop for Sandbox<S> {
    fn drop(&mut self) {
        // The directory of a failed test is kept for inspection.
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// The output and the exit code of a command.
pub(crate) struct CommandOutput {
    args: String,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

impl CommandOutput {
    pub(crate) fn new(args: &[&str], output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        Self { args: args.join(" "), out, err, code: output.status.code() }
    }

    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Asserts that the output contains a text.
    #[track_caller]
    pub(crate) fn prints(self, text: &str) -> Self {
        assert!(self.out.contains(text) || self.err.contains(text), "`{text}` is missing: {self:?}");
        self
    }

    /// Asserts that the output does not contain a text.
    #[track_caller]
    pub(crate) fn omits(self, text: &str) -> Self {
        assert!(!self.out.contains(text) && !self.err.contains(text), "`{text}` is there: {self:?}");
        self
    }
}

impl fmt::Debug for CommandOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$ cronhold {}\n{}{}exit {:?}", self.args, self.out, self.err, self.code)
    }
}

/// A running node. It is killed on drop, with its keeper and programs.
pub(crate) struct Node {
    child: Child,
    start: NodeStart,
    home: PathBuf,
    log: PathBuf,
}

/// How a daemon is started, for a restart.
struct NodeStart {
    dir: PathBuf,
    arguments: Vec<String>,
    url: String,
    /// The directory of its zone data, if it does not use the system's.
    zones: Option<PathBuf>,
}

impl NodeStart {
    /// Starts the daemon, which appends to the log.
    fn begin(&self, log: &Path) -> Child {
        let file = File::options().create(true).append(true).open(log).expect("a file");
        let mut command = bare(&self.dir, &[]);
        command.args(&self.arguments).env("CRONHOLD_STORE", &self.url).stderr(file);
        if let Some(zones) = &self.zones {
            command.env("TZDIR", zones);
        }
        command.spawn().expect("the binary starts")
    }
}

impl Node {
    /// Starts the daemon again after it was killed.
    pub(crate) fn start_again(&mut self) {
        self.child = self.start.begin(&self.log);
    }

    /// Its log, including all earlier processes.
    pub(crate) fn log_text(&self) -> String {
        fs::read_to_string(&self.log).expect("a log")
    }

    #[track_caller]
    pub(crate) fn wait_until_ready(&self) {
        self.wait_until_logged("ready", &[]);
    }

    /// Waits until an event with these fields is in its log.
    #[track_caller]
    pub(crate) fn wait_until_logged(&self, event: &str, fields: &[(&str, &str)]) {
        let what = format!("{event} {fields:?} is in {}", self.log.display());
        eventually(&what, || self.log_text().lines().any(|line| find_event(line, event, fields).is_some()));
    }

    /// Waits until an event with this text in its message is in the log.
    #[track_caller]
    pub(crate) fn wait_until_message(&self, event: &str, part: &str) {
        let has_part = |line: &Value| line["message"].as_str().is_some_and(|message| message.contains(part));
        let what = format!("{event} with `{part}` is in {}", self.log.display());
        eventually(&what, || self.logged(event).iter().any(has_part));
    }

    /// All logged events with a name, including those of earlier processes.
    pub(crate) fn logged(&self, event: &str) -> Vec<Value> {
        self.log_text().lines().filter_map(|line| find_event(line, event, &[])).collect()
    }

    /// Sends a signal to the daemon. Its keeper keeps running.
    pub(crate) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// The exit code of the daemon; `None` if it runs, -1 if a signal killed it.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        self.child.try_wait().expect("it is ours").map(|status| status.code().unwrap_or(-1))
    }

    /// Kills the daemon with SIGKILL. Its keeper keeps running.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends SIGTERM, and waits until the daemon has exited with code 0.
    #[track_caller]
    pub(crate) fn stop(mut self) {
        self.send(Signal::TERM);
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {}", self.log_text());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
        end_keeper_of(&self.home);
    }
}

/// The binary, without the environment of the test.
fn bare(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronhold"));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("USER", "ada").env("CRONHOLD_DATA", "nobody");
    command.current_dir(dir).args(args).stdin(Stdio::null());
    command
}

//! A directory with a daemon, and the commands that are run there.

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::log_lines::find_event;
use super::processes::{end_keeper_of, eventually};
use super::redact::redacted;

/// A temporary directory for a daemon. Daemon, keeper and programs are killed on drop.
pub(crate) struct Sandbox {
    dir: PathBuf,
    daemon: RefCell<Option<Child>>,
}

impl Sandbox {
    /// An empty directory, without a daemon.
    pub(crate) fn empty(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("jobs")).expect("a directory");
        Self { dir, daemon: RefCell::new(None) }
    }

    /// A directory with these job files and a daemon that is ready.
    pub(crate) fn up(name: &str, jobs: &[(&str, &str)]) -> Self {
        let sandbox = Self::empty(name);
        jobs.iter().for_each(|(id, yaml)| sandbox.put(&format!("jobs/{id}.yaml"), yaml));
        sandbox.start();
        sandbox
    }

    /// Starts a daemon, and waits until it is ready.
    pub(crate) fn start(&self) {
        self.start_with(&[]);
    }

    /// Starts a daemon with more options, and waits until it is ready.
    pub(crate) fn start_with(&self, options: &[&str]) {
        let mut command = self.command(&["up", "--name", "test", "--jobs", "jobs", "--listen", "127.0.0.1:0"]);
        command.args(["--log-format", "json"]).args(options);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut log = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let mut seen = Vec::new();
        while seen.last().is_none_or(|line: &String| find_event(line, "ready", &[]).is_none()) {
            let line = log.next();
            seen.push(line.unwrap_or_else(|| panic!("the daemon has exited: {}", seen.join("\n"))));
        }
        // The pipe is read until its end, so that it never fills up.
        std::thread::spawn(move || log.for_each(drop));
        self.daemon.replace(Some(child));
    }

    /// Ends the daemon with a signal, and waits until it has exited.
    pub(crate) fn end(&self, signal: Signal) {
        let mut child = self.daemon.take().expect("a daemon");
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        child.wait().expect("it ends");
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.join(path)
    }

    /// Writes a file.
    pub(crate) fn put(&self, path: &str, text: &str) {
        let file = self.path(path);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        // The file is renamed into place, so that the daemon never reads an incomplete one.
        let draft = self.path("draft");
        fs::write(&draft, text).expect("written");
        fs::rename(draft, file).expect("renamed");
    }

    /// The binary with arguments. It does not inherit the environment of the test.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronhold"));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("USER", "ada").env("CRONHOLD_DATA", "home");
        command.current_dir(&self.dir).args(args).stdin(Stdio::null());
        command
    }

    /// Runs a command, and waits until it exits.
    pub(crate) fn run_command(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the binary starts")
    }

    /// Runs a command that must succeed, and returns its standard output.
    pub(crate) fn done(&self, args: &[&str]) -> String {
        let output = self.run_command(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Runs a command with `-o json`, and returns the parsed output.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_slice(&self.run_command(&[args, &["-o", "json"]].concat()).stdout).expect("JSON")
    }

    /// The transcript of several commands, without values that vary between test runs.
    pub(crate) fn transcript(&self, commands: &[&[&str]]) -> String {
        commands.iter().map(|args| self.shown(args)).collect::<Vec<_>>().join("\n")
    }

    /// The transcript of one command.
    pub(crate) fn shown(&self, args: &[&str]) -> String {
        transcript_of(args, &self.run_command(args))
    }

    /// Runs a job, and waits until the run is finished. Ignores its outcome.
    pub(crate) fn run(&self, job: &str) {
        self.run_command(&["run", job, "--wait"]);
    }

    /// Waits until a run is in a state.
    pub(crate) fn wait_for(&self, run: &str, state: &str) {
        eventually(&format!("{run} is {state}"), || self.json(&["runs", run])[0]["state"] == state);
    }
}

impl Drop for Sandbox {
    /// Kills the daemon, the keeper and its programs, and removes the directory.
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        end_keeper_of(&self.path("home"));
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The transcript of a command that has exited: the command line, both outputs and the exit code.
pub(crate) fn transcript_of(args: &[&str], output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let words: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
    let mut shown = format!("$ cronhold {}\n{}", words.join(" "), text(&output.stdout));
    text(&output.stderr).lines().for_each(|line| shown += &format!("err| {line}\n"));
    shown += &format!("exit {}\n", output.status.code().expect("no signal"));
    redacted(&shown)
}

fn quoted(arg: &str) -> String {
    let plain = !arg.is_empty() && arg.chars().all(|sign| sign.is_alphanumeric() || "-_./=:+#,".contains(sign));
    if plain { arg.to_owned() } else { format!("'{arg}'") }
}

/// A running command, and its standard output.
pub(crate) struct RunningCommand {
    child: Option<Child>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl RunningCommand {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let stdout = child.stdout.take().map(BufReader::new);
        Self { child: Some(child), stdout }
    }

    /// Waits for a line. Panics if the command exits instead.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().expect("still read").read_line(&mut line).expect("UTF-8");
        assert!(!line.is_empty(), "the command has exited");
        line
    }

    /// Closes the pipe, as `head` does.
    pub(crate) fn close_pipe(&mut self) {
        self.stdout = None;
    }

    /// Waits until the command exits, and returns the rest of its output.
    pub(crate) fn end(mut self) -> Output {
        let mut rest = Vec::new();
        if let Some(mut stdout) = self.stdout.take() {
            stdout.read_to_end(&mut rest).expect("readable");
        }
        let child = self.child.take().expect("it ends once");
        let output = child.wait_with_output().expect("it ends");
        Output { stdout: rest, ..output }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

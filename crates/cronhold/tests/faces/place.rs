//! A directory with a daemon in it, and whoever gives commands there.

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

/// The directory. What runs in it is ended with it.
pub(crate) struct Place {
    dir: PathBuf,
    daemon: RefCell<Option<Child>>,
}

impl Place {
    /// An empty directory, without a daemon.
    pub(crate) fn empty(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("faces-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("jobs")).expect("a directory");
        Self { dir, daemon: RefCell::new(None) }
    }

    /// One with a daemon that has these job files and is ready.
    pub(crate) fn up(name: &str, jobs: &[(&str, &str)]) -> Self {
        let place = Self::empty(name);
        jobs.iter().for_each(|(id, yaml)| place.put(&format!("jobs/{id}.yaml"), yaml));
        place.start();
        place
    }

    /// Starts a daemon, and waits until it is ready.
    pub(crate) fn start(&self) {
        self.start_with(&[]);
    }

    /// The same with more options.
    pub(crate) fn start_with(&self, options: &[&str]) {
        let mut command = self.command(&["up", "--name", "test", "--jobs", "jobs", "--listen", "127.0.0.1:0"]);
        command.args(["--log-format", "json"]).args(options);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut log = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let mut seen = Vec::new();
        while !seen.last().is_some_and(|line: &String| find_event(line, "ready", &[]).is_some()) {
            let line = log.next();
            seen.push(line.unwrap_or_else(|| panic!("it has ended: {}", seen.join("\n"))));
        }
        // A daemon whose log is not read would wait for that.
        std::thread::spawn(move || log.for_each(drop));
        self.daemon.replace(Some(child));
    }

    /// Ends the daemon with a signal, and waits until it is gone.
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
        // Renamed into its place, so that nobody reads half of it.
        let draft = self.path("draft");
        fs::write(&draft, text).expect("written");
        fs::rename(draft, file).expect("renamed");
    }

    /// The binary with arguments. What somebody's shell sets must not matter.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronhold"));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("USER", "ada").env("CRONHOLD_DATA", "home");
        command.current_dir(&self.dir).args(args).stdin(Stdio::null());
        command
    }

    /// Gives a command, and waits for its end.
    pub(crate) fn give(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the binary starts")
    }

    /// Gives a command that must succeed.
    pub(crate) fn done(&self, args: &[&str]) -> String {
        let output = self.give(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// What a command answers to programs.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_slice(&self.give(&[args, &["-o", "json"]].concat()).stdout).expect("JSON")
    }

    /// What a shell would show for some commands, without what differs from time to time.
    pub(crate) fn transcript(&self, commands: &[&[&str]]) -> String {
        commands.iter().map(|args| self.shown(args)).collect::<Vec<_>>().join("\n")
    }

    /// The same for one command.
    pub(crate) fn shown(&self, args: &[&str]) -> String {
        told(args, &self.give(args))
    }

    /// Runs a job to its end, whatever that is.
    pub(crate) fn run(&self, job: &str) {
        self.give(&["run", job, "--wait"]);
    }

    /// Waits until a run is in a state.
    pub(crate) fn wait_for(&self, run: &str, state: &str) {
        eventually(&format!("{run} is {state}"), || self.json(&["runs", run])[0]["state"] == state);
    }
}

impl Drop for Place {
    /// Ends the daemon, and what a keeper would keep.
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        end_keeper_of(&self.path("home"));
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// What a shell would show for a command that has ended.
pub(crate) fn told(args: &[&str], output: &Output) -> String {
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

/// A command that goes on, and the lines that it has said.
pub(crate) struct Going {
    child: Option<Child>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Going {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let stdout = child.stdout.take().map(BufReader::new);
        Self { child: Some(child), stdout }
    }

    /// Waits for a line, which must come.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().expect("still read").read_line(&mut line).expect("UTF-8");
        assert!(!line.is_empty(), "it has ended");
        line
    }

    /// Reads no more of what it says, as `head` does when it has enough.
    pub(crate) fn leave(&mut self) {
        self.stdout = None;
    }

    /// Waits for its end, and tells what else it said.
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

impl Drop for Going {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

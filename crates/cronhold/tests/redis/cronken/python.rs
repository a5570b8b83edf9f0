//! The original Python Cronken: its nodes, and a client that uses its code. Both end with the process that started
//! them. Benchmarks include this file as a module.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::processes::eventually;

/// A node of Python Cronken.
pub(crate) struct PythonNode {
    child: Child,
    log: PathBuf,
}

impl PythonNode {
    /// Starts a node on the server at a port, with options of its driver. Waits until it has loaded its jobs and
    /// receives events. Its output goes to the log.
    pub(crate) fn start(port: u16, options: &[&str], log: &Path) -> Self {
        let file = File::create(log).expect("a file");
        let mut command = python("node.py", port);
        command.args(options);
        command.stdin(Stdio::piped()).stdout(file.try_clone().expect("a file")).stderr(file);
        // A process group, so that its programs are killed with it.
        command.process_group(0);
        let node = Self { child: command.spawn().expect("Python starts"), log: log.to_owned() };
        eventually("Python Cronken is ready", || node.log_text().lines().any(|line| line == "ready"));
        node
    }

    /// The text of its log.
    pub(crate) fn log_text(&self) -> String {
        fs::read_to_string(&self.log).expect("a log")
    }

    /// Its pid, which is also the process group of its programs.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for PythonNode {
    /// Kills the node and its programs with SIGKILL.
    fn drop(&mut self) {
        let _ = kill_process_group(self.pid(), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A client of Python Cronken.
pub(crate) struct PythonClient {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl PythonClient {
    /// A client of the server at a port.
    pub(crate) fn start(port: u16) -> Self {
        let mut command = python("client.py", port);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
        let questions = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, questions, answers }
    }

    /// Calls a function of the client with named arguments. Panics if it fails.
    #[track_caller]
    pub(crate) fn call(&mut self, function: &str, arguments: Value) -> Value {
        let mut question = arguments;
        question["ask"] = json!(function);
        let questions = self.questions.as_mut().expect("open until it ends");
        writeln!(questions, "{question}").expect("it reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        let mut answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(answer.get("error").is_none(), "{question}: {}", answer["error"]);
        answer["ok"].take()
    }
}

impl Drop for PythonClient {
    fn drop(&mut self) {
        drop(self.questions.take());
        let _ = self.child.wait();
    }
}

/// One of our drivers, run by the Python in which Cronken is installed.
fn python(driver: &str, port: u16) -> Command {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../cronken/bin/python3");
    assert!(program.exists(), "Python Cronken is not installed; `./dev test` does that");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cronken");
    let mut command = Command::new(program);
    command.arg(folder.join(driver)).args(["--port", &port.to_string()]);
    command
}

//! A real daemon on a free port, in its own directory. Tests poll it until a condition holds, and leave no process
//! behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::processes::{end_keeper_of, eventually};
use super::wire::{Reply, Wire};

/// A job without a schedule.
pub(crate) const IDLE: &str = "program: {noop: true}\nschedule: triggered\n";
/// A job whose runs last until they are stopped.
pub(crate) const ENDLESS: &str = "program: exec sleep 1000\nschedule: triggered\n";

/// A temporary directory for a daemon and its job files.
pub(crate) struct Sandbox(PathBuf);

impl Sandbox {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("api-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("jobs")).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.0.join(below)
    }

    pub(crate) fn put_file(&self, id: &str, yaml: &str) {
        fs::write(self.path(&format!("jobs/{id}.yaml")), yaml).expect("a file");
    }

    /// Starts a daemon and waits until it is ready.
    pub(crate) fn up(&self) -> Daemon {
        let daemon = self.start(&[]);
        eventually("it is ready", || daemon.open("GET /ready").status == 200);
        daemon
    }

    /// Starts a daemon and waits until it listens. It does not inherit the environment of the test.
    pub(crate) fn start(&self, variables: &[(&str, &str)]) -> Daemon {
        let log = fs::File::options().create(true).append(true).open(self.path("log")).expect("a file");
        let child = Command::new(env!("CARGO_BIN_EXE_cronhold"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .envs(variables.iter().copied())
            .current_dir(&self.0)
            .args(["up", "--data", "data", "--jobs", "jobs", "--name", "test", "--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the binary starts");
        let mut daemon = Daemon { child, address: String::new(), token: String::new() };
        eventually("it listens", || {
            let ended = daemon.child.try_wait().expect("a child");
            assert_eq!(ended, None, "{}", fs::read_to_string(self.path("log")).unwrap_or_default());
            let text = fs::read(self.path("data/address")).unwrap_or_default();
            let address: Value = serde_json::from_slice(&text).unwrap_or_default();
            // The file may be from a daemon that was killed.
            if address["pid"] != daemon.child.id() {
                return false;
            }
            let url = address["url"].as_str().expect("a URL");
            url.trim_start_matches("http://").clone_into(&mut daemon.address);
            true
        });
        let token = fs::read_to_string(self.path("data/token")).expect("a token");
        token.trim().clone_into(&mut daemon.token);
        daemon
    }
}

impl Drop for Sandbox {
    /// Kills the keeper and its programs, and removes the directory.
    fn drop(&mut self) {
        end_keeper_of(&self.path("data"));
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running daemon. It is killed on drop.
pub(crate) struct Daemon {
    child: Child,
    /// Host and port.
    pub(crate) address: String,
    pub(crate) token: String,
}

impl Daemon {
    /// Sends a request with the token. Headers follow the first line, and the body follows an empty line.
    pub(crate) fn request(&self, request: &str) -> Reply {
        let (line, rest) = request.split_once('\n').unwrap_or((request, ""));
        self.open(&format!("{line}\nAuthorization: Bearer {}\n{rest}", self.token))
    }

    /// Sends a request with the token and a JSON body.
    pub(crate) fn send(&self, line: &str, body: &str) -> Reply {
        self.request(&format!("{line}\nContent-Type: application/json\n\n{body}"))
    }

    /// The JSON of a response that must have status 200.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        let reply = self.request(&format!("GET {path}"));
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// Sends a request without the token, on a new connection.
    pub(crate) fn open(&self, request: &str) -> Reply {
        let mut wire = self.wire();
        wire.send(&self.http(request));
        wire.reply()
    }

    /// Opens a connection.
    pub(crate) fn wire(&self) -> Wire {
        Wire::to(&self.address)
    }

    /// The bytes of a request. Adds a `Host` header, unless there is one, and the length of the body.
    pub(crate) fn http(&self, request: &str) -> Vec<u8> {
        let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
        let (line, headers) = head.split_once('\n').unwrap_or((head, ""));
        let mut lines = vec![format!("{line} HTTP/1.1")];
        if !headers.lines().any(|header| header.starts_with("Host:")) {
            lines.push(format!("Host: {}", self.address));
        }
        lines.extend(headers.lines().map(str::to_owned));
        if !body.is_empty() {
            lines.push(format!("Content-Length: {}", body.len()));
        }
        format!("{}\r\n\r\n{body}", lines.join("\r\n")).into_bytes()
    }

    /// Asserts that the daemon still answers valid requests.
    #[track_caller]
    pub(crate) fn assert_well(&self) {
        assert_eq!(self.open("GET /health").status, 200);
        self.get("/api/v1/jobs");
    }

    /// Creates a run of a job, waits until it is finished, and returns it.
    #[track_caller]
    pub(crate) fn run(&self, job: &str) -> Value {
        let made = self.request(&format!("POST /api/v1/jobs/{job}/runs"));
        assert_eq!(made.status, 201, "{}", made.text());
        let id = made.json()["id"].as_str().expect("an id").to_owned();
        self.wait_for(&id, |run| !run["times"]["finished"].is_null())
    }

    /// Waits until a condition holds for a run, and returns the run.
    #[track_caller]
    pub(crate) fn wait_for(&self, run: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut found = Value::Null;
        eventually(run, || {
            found = self.get(&format!("/api/v1/runs/{}", run.replace('#', "%23")));
            holds(&found)
        });
        found
    }

    /// Kills the daemon with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is gone");
    }

    /// Sends SIGTERM, and waits until the daemon has exited.
    pub(crate) fn stop(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it runs");
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Real daemons on a store that several of them share.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cronhold_daemon::clock::SystemClock;
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;
use serde_json::Value;

use crate::processes::{end_keeper_of, eventually};
use crate::rig::block_on;

/// A real daemon. It is killed on drop, with its keeper and programs.
pub(crate) struct Daemon {
    child: Child,
    home: PathBuf,
}

impl Daemon {
    /// Starts a daemon with more options.
    pub(crate) fn start(store: &str, home: PathBuf, name: &str, args: &[&str]) -> Self {
        fs::create_dir_all(&home).expect("a directory");
        let log = home.join("log");
        let mut command = bare(&home);
        command.args(["up", "--quiet", "--listen", "127.0.0.1:0", "--name", name, "--store", store]).args(args);
        let child = command.stderr(File::create(&log).expect("a file")).spawn().expect("the binary starts");
        let daemon = Self { child, home };
        // With `--quiet` the daemon does not log that it is ready, so a command checks it.
        eventually("the daemon is ready", || daemon.run_json(&["nodes"]).is_some());
        daemon
    }

    /// The pid of the daemon.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
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

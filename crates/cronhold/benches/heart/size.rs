//! The real binary with many stored jobs: the time until it is ready, its memory, and its CPU usage while nothing is
//! due.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use cronhold_daemon::bench::node::NodeSetup;
use cronhold_daemon::bench::samples::seconds;
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;

use crate::account::{busy_percent, memory};
use crate::programs::rare_job;
use crate::report::{Report, Target};
use crate::rig::{block_on, run, scratch};
use crate::sqlite;

const IDLE: Span = Span::from_secs(20);
/// Time from the start until the idle time.
const SETTLE: Span = Span::from_secs(15);

/// Targets for a number of jobs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) megabytes: f64,
    pub(crate) seconds: f64,
    /// The usage of a processor while nothing is due; not measured when absent.
    pub(crate) idle_percent: Option<f64>,
}

pub(crate) fn measure(report: &mut Report, clock: &dyn MachineClock, jobs: usize, limits: Limits) {
    let dir = scratch("size");
    run(NodeSetup::new(&dir, sqlite(&dir)), async |node| node.put_jobs(jobs, rare_job).await);
    let mut put = |what: &str, value: f64, unit, most: f64| {
        report.compare(format!("{jobs} stored jobs: {what}"), value, unit, Target::AtMost(most));
    };
    let begin = clock.uptime();
    let mut daemon = Daemon::start(&dir);
    daemon.wait_for("ready");
    put("ready after", seconds(clock.uptime().minus(begin)), "s", limits.seconds);
    put("memory", memory(daemon.pid(), "VmRSS:"), "MB", limits.megabytes);
    if let Some(percent) = limits.idle_percent {
        // After the walk over all jobs that the start may cause.
        block_on(clock.sleep(SETTLE));
        put("idle CPU", busy_percent(daemon.pid(), IDLE), "%", percent);
    }
    put("peak memory", memory(daemon.pid(), "VmHWM:"), "MB", limits.megabytes);
    drop(daemon);
    let _ = fs::remove_dir_all(dir);
}

/// A real daemon. It is killed on drop.
pub(crate) struct Daemon {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Daemon {
    pub(crate) fn start(dir: &Path) -> Self {
        Self::start_with(dir, &[])
    }

    /// Starts a daemon with a data directory and more options, on any free port.
    pub(crate) fn start_with(dir: &Path, args: &[&OsStr]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cronhold"))
            .args(["up", "--listen", "127.0.0.1:0", "--data"])
            .arg(dir)
            .args(args)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        Self { child, lines }
    }

    /// Waits for a log line that ends with this text.
    pub(crate) fn wait_for(&mut self, end: &str) {
        let found = self.lines.by_ref().map_while(Result::ok).any(|line| line.ends_with(end));
        assert!(found, "the daemon ended before it was {end}");
    }

    /// The pid of the daemon.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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
use crate::report::{Report, Target};
use crate::rig::{run, scratch};
use crate::sqlite;

const IDLE: Span = Span::from_secs(20);

/// Targets for a number of jobs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) megabytes: Option<f64>,
    pub(crate) seconds: Option<f64>,
    pub(crate) idle_percent: Option<f64>,
}

pub(crate) fn measure(report: &mut Report, clock: &dyn MachineClock, jobs: usize, limits: Limits) {
    let dir = scratch("size");
    run(NodeSetup::new(&dir, sqlite(&dir)), async |node| {
        // Due at 3 o'clock on one day of the year, so that hardly any is due during the measurement.
        let yaml = |number: usize| {
            let (day, month) = (number % 28 + 1, number / 28 % 12 + 1);
            format!("program: {{noop: true}}\nschedule: {{cron: \"0 3 {day} {month} *\", timezone: Europe/Berlin}}\n")
        };
        node.put_jobs(jobs, yaml).await
    });
    let mut put = |what: String, value: f64, unit, most: Option<f64>| match most {
        Some(most) => report.compare(what, value, unit, Target::AtMost(most)),
        None => report.note(what, value, unit),
    };
    let begin = clock.uptime();
    let mut daemon = Daemon::start(&dir);
    daemon.wait_for("ready");
    put(format!("{jobs} stored jobs: ready after"), seconds(clock.uptime().minus(begin)), "s", limits.seconds);
    put(format!("{jobs} stored jobs: memory"), memory(daemon.pid(), "VmRSS:"), "MB", limits.megabytes);
    put(format!("{jobs} stored jobs: peak memory"), memory(daemon.pid(), "VmHWM:"), "MB", None);
    if limits.idle_percent.is_some() {
        put(format!("{jobs} stored jobs: idle CPU"), busy_percent(daemon.pid(), IDLE), "%", limits.idle_percent);
    }
    drop(daemon);
    let _ = fs::remove_dir_all(dir);
}

/// A real daemon. It is killed on drop.
pub(crate) struct Daemon {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Daemon {
    fn start(dir: &Path) -> Self {
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

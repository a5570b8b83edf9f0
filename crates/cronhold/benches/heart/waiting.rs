//! Runs that wait for others on the embedded store: how fast they are woken, and what many of them cost.

use std::fs;
use std::process::{Command, Stdio};

use cronhold_daemon::bench::node::{BenchNode, NodeSetup, job_id};
use cronhold_daemon::clock::SystemClock;
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;
use serde_json::Value;

use crate::account::busy_percent;
use crate::report::{Report, Target};
use crate::rig::{block_on, run, scratch};
use crate::size::Daemon;
use crate::sqlite;
use crate::waits;

/// Jobs whose runs wait, and the runs of each.
const JOBS: usize = 20;
const RUNS: usize = 500;
/// Time until the daemon has finished its start, and then the time of the measurement.
const SETTLE: Span = Span::from_secs(15);
const FOR: Span = Span::from_secs(60);
/// Target for the cost of all waiting runs, in percent of a core.
const COST_MOST: f64 = 1.0;

/// Measures the time from the end of a run to the start of the program that has waited for it.
pub(crate) fn wake(report: &mut Report) {
    let dir = scratch("wake").canonicalize().expect("it is there");
    let mut daemon = Daemon::start(&dir);
    daemon.wait_for("ready");
    let call = |args: &[&str]| -> Option<Value> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronhold"));
        command.args(args).args(["-o", "json"]).env("CRONHOLD_DATA", &dir).stdin(Stdio::null());
        serde_json::from_slice(&command.output().expect("the binary starts").stdout).ok()
    };
    waits::wake(report, "wake-up by `after`, one node", &dir, (&call, &call), ["", ""]);
    drop(daemon);
    let _ = fs::remove_dir_all(dir);
}

/// Measures a daemon whose runs all wait for a job that never runs.
pub(crate) fn cost(report: &mut Report) {
    let dir = scratch("waiting");
    run(NodeSetup::new(&dir, sqlite(&dir)), async |node| {
        let never = job_id(0);
        node.put_jobs(JOBS + 1, |number| match number {
            0 => "program: {noop: true}\n".to_owned(),
            _ => format!("program: {{noop: true}}\noverlap: allow\nconditions: [{{after: {never}}}]\n"),
        })
        .await?;
        for number in 1..=JOBS {
            for _ in 0..RUNS {
                BenchNode::run_once(&node.node, job_id(number)).await?;
            }
        }
        Ok(())
    });
    let mut daemon = Daemon::start(&dir);
    daemon.wait_for("ready");
    block_on(async { SystemClock::new().expect("a timer").sleep(SETTLE).await });
    let what = format!("{} waiting runs: CPU", JOBS * RUNS);
    report.compare(what, busy_percent(daemon.pid(), FOR), "%", Target::AtMost(COST_MOST));
    drop(daemon);
    let _ = fs::remove_dir_all(dir);
}

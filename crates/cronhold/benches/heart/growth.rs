//! How cost grows with the number of jobs and with the number of kept runs: a claim, the start and the memory of the
//! daemon, and the commands that read much.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use cronhold_cli::CliError;
use cronhold_daemon::bench::node::{BenchNode, NodeSetup, job_id};
use cronhold_daemon::bench::runs::{time_lone_claims, while_requesting};
use cronhold_daemon::bench::samples::{LoopLimit, SampleSet, Stopwatch, seconds};
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;

use crate::account::memory;
use crate::programs::rare_job;
use crate::report::Report;
use crate::rig::{run, scratch};
use crate::size::Daemon;
use crate::sqlite;

/// Claims of which the report shows the median.
const CLAIMS: LoopLimit = LoopLimit::Count(200);
/// Jobs that runs are requested of.
const JOBS: usize = 1_000;
/// How often each command is called. The report shows the median.
const CALLS: usize = 5;
/// Interval at which kept runs are counted.
const POLL_INTERVAL: Span = Span::from_millis(20);

/// Measures with a number of stored jobs.
pub(crate) fn by_jobs(report: &mut Report, clock: &dyn MachineClock, jobs: usize) {
    let dir = scratch("growth");
    let claims = run(NodeSetup::new(&dir, sqlite(&dir)).with_ended_runs(), async |node| {
        node.put_jobs(jobs, rare_job).await?;
        time_lone_claims(node, CLAIMS).await
    });
    measure(report, clock, &dir, &format!("{jobs} jobs"), &claims);
}

/// Measures with a number of kept runs, of a thousand jobs.
pub(crate) fn by_runs(report: &mut Report, clock: &dyn MachineClock, runs: usize) {
    let dir = scratch("growth");
    let claims = run(NodeSetup::new(&dir, sqlite(&dir)).with_ended_runs(), async |node| {
        fill(node, runs).await?;
        time_lone_claims(node, CLAIMS).await
    });
    measure(report, clock, &dir, &format!("{runs} kept runs"), &claims);
}

/// Requests runs of jobs that keep all of them.
async fn fill(node: &BenchNode, runs: usize) -> Result<(), CliError> {
    let wait = async {
        let keeping = "program: {noop: true}\noverlap: allow\nschedule: triggered\nretain: {success: 1000000}\n";
        node.put_jobs(JOBS, |_| keeping.to_owned()).await?;
        while node.node.counters().finished < runs as u64 {
            drop(node.recorder.take_ended(usize::MAX));
            drop(node.recorder.take_starts());
            node.clock.sleep(POLL_INTERVAL).await;
        }
        Ok(())
    };
    while_requesting(node, wait).await?
}

/// Starts the daemon on a store, and measures what its users wait for.
fn measure(report: &mut Report, clock: &dyn MachineClock, dir: &Path, what: &str, claims: &SampleSet) {
    report.note(format!("{what}: one claim, median"), claims.median(), "ms");
    let begin = clock.uptime();
    let mut daemon = Daemon::start(dir);
    daemon.wait_for("ready");
    report.note(format!("{what}: ready after"), seconds(clock.uptime().minus(begin)), "s");
    report.note(format!("{what}: memory"), memory(daemon.pid(), "VmRSS:"), "MB");
    let job = job_id(7).to_string();
    for args in [&["runs"][..], &["list"], &["why", &job], &["holes"]] {
        let millis = (0..CALLS).map(|_| {
            let stopwatch = Stopwatch::start();
            call(dir, args);
            stopwatch.millis()
        });
        report.note(format!("{what}: `cronhold {}`", args[0]), SampleSet::new(millis.collect()).median(), "ms");
    }
    report.note(format!("{what}: memory after these commands"), memory(daemon.pid(), "VmRSS:"), "MB");
    drop(daemon);
    let _ = fs::remove_dir_all(dir);
}

fn call(dir: &Path, args: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronhold"));
    command.args(args).env("CRONHOLD_DATA", dir).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().expect("the binary starts");
    assert!(status.success(), "`cronhold {}` fails", args.join(" "));
}

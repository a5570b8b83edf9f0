//! A real daemon on a store that has many jobs: the time until it is ready, and its memory.

use cronhold_daemon::bench::node::NodeSetup;
use cronhold_daemon::bench::samples::seconds;
use cronhold_daemon::clock::SystemClock;
use cronhold_engine::MachineClock;
use cronhold_store_zookeeper::testing::ZooKeeperServer;

use crate::account::memory;
use crate::daemons::Daemon;
use crate::report::{Report, Target};
use crate::rig::{block_on, run, scratch};
use crate::store_of;

/// Stored jobs.
pub(crate) const JOBS: usize = 10_000;
/// The root of their store.
pub(crate) const ROOT: &str = "/size";
/// Target for the seconds until a daemon is ready.
const READY_MOST: f64 = 3.0;

/// Stores jobs that hardly ever run, and starts a daemon.
pub(crate) fn measure(report: &mut Report, server: &ZooKeeperServer) {
    let dir = scratch("size");
    let clock = block_on(async { SystemClock::new().expect("a timer") });
    let store = store_of(ROOT.as_ref(), |root| server.url(root));
    let begin = clock.uptime();
    run(NodeSetup::new(&dir, store), async |node| node.put_jobs(JOBS, rare_job).await);
    report.note(format!("{JOBS} jobs: stored after"), seconds(clock.uptime().minus(begin)), "s");
    let begin = clock.uptime();
    let daemon = Daemon::start(&server.url(ROOT), dir.join("daemon"), "loader", &[]);
    let took = seconds(clock.uptime().minus(begin));
    report.compare(format!("{JOBS} jobs: loaded, daemon ready after"), took, "s", Target::AtMost(READY_MOST));
    report.note(format!("{JOBS} jobs: memory"), memory(daemon.pid(), "VmRSS:"), "MB");
    drop(daemon);
    let _ = std::fs::remove_dir_all(dir);
}

/// A job that is due once a year, at night.
fn rare_job(number: usize) -> String {
    let (day, month) = (number % 28 + 1, number / 28 % 12 + 1);
    format!("program: {{noop: true}}\nschedule: {{cron: \"0 3 {day} {month} *\"}}\n")
}

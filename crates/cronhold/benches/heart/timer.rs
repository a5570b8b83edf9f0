//! The delay of the daemon's timers on an idle executor.

use cronhold_daemon::bench::machine::time_timers;
use cronhold_daemon::bench::samples::LoopLimit;
use cronhold_daemon::clock::SystemClock;

use crate::report::Report;
use crate::rig::block_on;

const WAITS: LoopLimit = LoopLimit::Count(400);

pub(crate) fn measure(report: &mut Report) {
    let late = block_on(async { time_timers(&SystemClock::new().expect("a timer"), WAITS).await });
    report.note("timer delay: median", late.median(), "ms");
    report.note("timer delay: p99", late.percentile(99), "ms");
}

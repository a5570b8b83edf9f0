//! The delay of the daemon's timers on an idle executor.

use cronhold_daemon::clock::SystemClock;
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;

use crate::report::Report;
use crate::rig::block_on;
use crate::throughput::number;

const WAITS: usize = 400;
const WAIT: Span = Span::from_micros(5_300);

pub(crate) fn measure(report: &mut Report) {
    let mut late: Vec<u64> = block_on(async {
        let clock = SystemClock::new().expect("a timer");
        let mut late = Vec::with_capacity(WAITS);
        for _ in 0..WAITS {
            let before = clock.uptime();
            clock.sleep(WAIT).await;
            late.push(clock.uptime().minus(before).minus(WAIT).micros());
        }
        late
    });
    late.sort_unstable();
    report.note("timer delay: median", number(late[WAITS / 2]) / 1_000.0, "ms");
    report.note("timer delay: p99", number(late[WAITS * 99 / 100]) / 1_000.0, "ms");
}

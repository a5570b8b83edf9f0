//! Many jobs that are not due: the time until a node of either side is ready, its memory, and its CPU usage.

use cronhold_daemon::bench::samples::seconds;
use cronhold_engine::MachineClock;
use cronhold_schedule::Span;
use serde_json::json;

use crate::account::{busy_percent, memory};
use crate::place::{Place, SIDES, Side};
use crate::report::Report;

const IDLE: Span = Span::from_secs(20);

pub(crate) fn measure(report: &mut Report, place: &mut Place, clock: &dyn MachineClock, jobs: usize) {
    for side in SIDES {
        put_rare(place, jobs);
        let of = format!("{}, {jobs} jobs", side.name());
        if side == Side::Cronhold {
            // Our first node in a namespace adopts the jobs. That happens once per namespace.
            let begin = clock.uptime();
            drop(place.start(side, "node"));
            report.note(format!("{of}: ready after the first start"), seconds(clock.uptime().minus(begin)), "s");
        }
        let begin = clock.uptime();
        let node = place.start(side, "node");
        report.note(format!("{of}: ready after"), seconds(clock.uptime().minus(begin)), "s");
        report.note(format!("{of}: idle CPU"), busy_percent(node.pid(), IDLE), "%");
        report.note(format!("{of}: memory"), memory(node.pid(), "VmRSS:"), "MB");
        report.note(format!("{of}: peak memory"), memory(node.pid(), "VmHWM:"), "MB");
    }
}

/// Puts jobs that are due at 3 o'clock on one day of the year, so that hardly any is due during the measurement.
pub(crate) fn put_rare(place: &mut Place, jobs: usize) {
    place.put_jobs(jobs, "true", true, |number| {
        let (day, month) = (number % 28 + 1, number / 28 % 12 + 1);
        json!({"cronstring": format!("0 3 {day} {month} *")})
    });
}

//! Many jobs that are not due: how soon a node of either side is ready, how much memory it has, and what it does.

use cronhold_engine::MachineClock;
use cronhold_schedule::Span;
use serde_json::json;

use crate::account::{busy_percent, memory};
use crate::place::{Place, SIDES, Side};
use crate::report::Report;
use crate::rig::seconds;

const IDLE: Span = Span::from_secs(20);

pub(crate) fn measure(report: &mut Report, place: &mut Place, clock: &dyn MachineClock, jobs: usize) {
    for side in SIDES {
        put_rare(place, jobs);
        let of = format!("{}, {jobs} jobs", side.name());
        if side == Side::Cronhold {
            // The first node of ours makes them its own. That happens once in the life of a namespace.
            let begin = clock.uptime();
            drop(place.start(side, "node"));
            report.note(format!("{of}: ready after the first start"), seconds(clock.uptime().minus(begin)), "s");
        }
        let begin = clock.uptime();
        let node = place.start(side, "node");
        report.note(format!("{of}: ready after"), seconds(clock.uptime().minus(begin)), "s");
        report.note(format!("{of}: idle CPU"), busy_percent(node.pid(), IDLE), "%");
        report.note(format!("{of}: memory"), memory(node.pid(), "VmRSS:"), "MB");
        report.note(format!("{of}: most memory so far"), memory(node.pid(), "VmHWM:"), "MB");
    }
}

/// Jobs that are due at 3 o'clock on one day of the year, which is hardly today.
pub(crate) fn put_rare(place: &mut Place, jobs: usize) {
    place.put_jobs(jobs, "true", true, |number| {
        let (day, month) = (number % 28 + 1, number / 28 % 12 + 1);
        json!({"cronstring": format!("0 3 {day} {month} *")})
    });
}

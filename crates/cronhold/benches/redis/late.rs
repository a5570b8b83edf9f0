//! Jobs that are due in the same second, on either side: the delay of their programs, and how many start.

use std::fs;

use cronhold_daemon::bench::samples::number;
use cronhold_daemon::clock::now;
use cronhold_schedule::{Instant, Span};
use serde_json::json;

use crate::node_kills::micros;
use crate::place::{Place, SIDES, rest};
use crate::report::Report;

/// Seconds between two instants at which all jobs are due.
const PERIOD: u32 = 10;
/// Measured instants.
const ROUNDS: u32 = 2;
/// The least time between the start of a node and the first instant.
const BEFORE: Span = Span::from_secs(1);

pub(crate) fn measure(report: &mut Report, place: &mut Place, jobs: usize) {
    for side in SIDES {
        let cmd = format!("echo $EPOCHREALTIME >> {}", place.starts().display());
        place.put_jobs(jobs, &cmd, true, |_| json!({"second": format!("*/{PERIOD}")}));
        let node = place.start(side, "node");
        let period = i64::from(PERIOD);
        let first = Instant::from_secs((now().plus(BEFORE).secs() / period + 1) * period);
        let end = first.plus(Span::from_secs(u64::from(PERIOD * ROUNDS)));
        rest(end.since(now()));
        drop(node);
        let text = fs::read_to_string(place.starts()).unwrap_or_default();
        let times = text.lines().filter_map(micros).filter(|time| (first.micros()..end.micros()).contains(time));
        let mut late: Vec<u64> = times.map(|time| time.rem_euclid(period * 1_000_000).unsigned_abs()).collect();
        late.sort_unstable();
        let part = |percent: usize| late.get(late.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0);
        let of = format!("{}, {jobs} jobs due in one second", side.name());
        let started = number(late.len() as u64) / f64::from(ROUNDS) / number(jobs as u64);
        report.note(format!("{of}: started"), 100.0 * started, "%");
        report.note(format!("{of}: late, median"), number(part(50)) / 1_000.0, "ms");
        report.note(format!("{of}: late, p99"), number(part(99)) / 1_000.0, "ms");
        report.note(format!("{of}: late, last"), number(part(100)) / 1_000.0, "ms");
    }
}

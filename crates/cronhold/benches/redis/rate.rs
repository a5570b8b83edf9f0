//! The programs per second that either side sustains, and the load on the server per program: the same jobs are due
//! every second, with an increasing number of jobs.

use std::fs;
use std::process::Command;

use cronhold_daemon::bench::samples::{LoopLimit, number, seconds};
use cronhold_schedule::Span;
use serde_json::json;

use crate::place::{Place, SIDES, Side, rest};
use crate::programs::bare_rate;
use crate::report::{Report, Target};

/// Jobs that are due every second.
const LOADS: [usize; 5] = [10, 250, 500, 1_000, 2_000];
const WARM_UP: Span = Span::from_secs(4);
const FOR: Span = Span::from_secs(12);
/// Programs of the bare loop.
const BARE: LoopLimit = LoopLimit::Count(2_000);
/// Target for the ratio of our rate to Cronken's.
const TIMES_MORE: f64 = 4.0;

pub(crate) fn measure(report: &mut Report, place: &mut Place) {
    // Both sides start a shell for each run. The bare loop is the upper limit.
    let cmd = command(place);
    let bare = bare_rate(BARE, || {
        let mut shell = Command::new("/bin/bash");
        shell.args(["-c", &cmd]);
        shell
    });
    report.note("bare loop: start the same shell and wait, 64 in flight", bare, "/s");
    let mut best = [0.0; SIDES.len()];
    for load in LOADS {
        for (side, best) in SIDES.into_iter().zip(&mut best) {
            *best = f64::max(*best, one(report, place, side, load));
        }
    }
    for (side, best) in SIDES.into_iter().zip(best) {
        report.note(format!("{}, process runs: maximum", side.name()), best, "/s");
    }
    let [theirs, ours] = best;
    report.compare("  ratio of Cronhold to Cronken", ours / theirs.max(1.0), "", Target::AtLeast(TIMES_MORE));
}

fn command(place: &Place) -> String {
    format!("echo >> {}", place.starts().display())
}

/// Measures the programs per second with `load` jobs.
fn one(report: &mut Report, place: &mut Place, side: Side, load: usize) -> f64 {
    let cmd = command(place);
    place.put_jobs(load, &cmd, true, |_| json!({"second": "*"}));
    let node = place.start(side, "node");
    rest(WARM_UP);
    let read = |place: &Place| {
        let starts = fs::metadata(place.starts()).map_or(0, |file| file.len());
        let scripts = place.info("commandstats", "cmdstat_evalsha") + place.info("commandstats", "cmdstat_eval");
        let (reads, all) =
            (place.info("stats", "total_reads_processed"), place.info("stats", "total_commands_processed"));
        [starts, scripts, reads, all]
    };
    let before = read(place);
    rest(FOR);
    let after = read(place);
    drop(node);
    let [runs, scripts, reads, all] = [0, 1, 2, 3].map(|at| number(after[at] - before[at]));
    let rate = runs / seconds(FOR);
    let of = format!("{}, {load} jobs every second", side.name());
    report.note(format!("{of}: process runs"), rate, "/s");
    report.note(format!("{of}: reads of the server per run"), reads / runs.max(1.0), "");
    report.note(format!("{of}: scripts per run"), scripts / runs.max(1.0), "");
    report.note(format!("{of}: commands per run, including scripts"), all / runs.max(1.0), "");
    rate
}

//! Benchmarks of nodes on a real Redis: one node, a comparison with Python Cronken on the same server with the same
//! jobs, and several nodes of which one after the other is killed.
//!
//! `./dev bench redis WORD…` runs only benchmarks whose name contains one of the words. The names are asked, scheduled,
//! at-once, nodes, programs-rate, programs-late, programs-loaded, beside-late, beside-rate, beside-size, wake and idle.
//! `kills` runs only if it is named, because it takes minutes; `seconds=NUMBER` sets its duration.

#[path = "../shared/account.rs"]
mod account;
#[path = "../shared/at_once.rs"]
mod at_once;
#[path = "../shared/daemons.rs"]
mod daemons;
mod idle;
mod kills;
mod late;
#[path = "../shared/node_kills.rs"]
mod node_kills;
mod nodes;
mod place;
#[path = "../../tests/processes/mod.rs"]
mod processes;
#[path = "../shared/programs.rs"]
mod programs;
#[path = "../../tests/redis/cronken/python.rs"]
mod python;
mod rate;
#[path = "../shared/report.rs"]
mod report;
#[path = "../shared/rig.rs"]
mod rig;
mod size;
#[path = "../shared/throughput.rs"]
mod throughput;
#[path = "../shared/waits.rs"]
mod waits;
mod wake;

use std::process::ExitCode;

use cronhold_daemon::clock::SystemClock;

use crate::place::Place;
use crate::report::Report;
use crate::rig::block_on;

/// Targets for no-op runs per second, on request and by schedules.
const ASKED_LEAST: f64 = 18_000.0;
const SCHEDULED_LEAST: f64 = 15_000.0;
/// Numbers of nodes of which one after the other is killed.
const KILLED_AMONG: [usize; 2] = [2, 3];
/// The default duration of `kills`, in seconds.
const KILLS_SECONDS: u64 = 120;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let clock = block_on(async { SystemClock::new().expect("a timer") });
    let mut report = Report::default();
    let mut place = Place::new();
    alone(&mut report, &place, &wanted);
    if wanted("wake") {
        wake::measure(&mut report, &mut place);
    }
    if wanted("nodes") {
        nodes::measure(&mut report, &place);
    }
    for jobs in [200, 500, 1_000] {
        if wanted(&format!("beside-late-{jobs}")) {
            late::measure(&mut report, &mut place, jobs);
        }
    }
    if wanted("beside-rate") {
        rate::measure(&mut report, &mut place);
    }
    if wanted("beside-size") {
        size::measure(&mut report, &mut place, &clock, 10_000);
    }
    if wanted("idle") {
        idle::measure(&mut report, &mut place, 10, 10_000);
    }
    if words.iter().any(|word| word == "kills") {
        let seconds = words.iter().find_map(|word| word.strip_prefix("seconds=")?.parse().ok());
        for nodes in KILLED_AMONG {
            kills::measure(&mut report, &mut place, nodes, seconds.unwrap_or(KILLS_SECONDS));
        }
    }
    report.print();
    ExitCode::from(u8::from(report.has_missed("kills")))
}

/// One node in this process.
fn alone(report: &mut Report, place: &Place, wanted: &dyn Fn(&str) -> bool) {
    let stores = |dir: &std::path::Path| place.store_of(dir);
    if wanted("asked") {
        throughput::asked(report, &stores, ASKED_LEAST);
    }
    if wanted("scheduled") {
        throughput::scheduled(report, &stores, 20_000, SCHEDULED_LEAST);
    }
    for (jobs, every) in [(1, 1), (1_000, 2), (10_000, 5)] {
        if wanted(&format!("at-once-{jobs}")) {
            at_once::measure(report, &stores, jobs, every, None);
        }
    }
    if wanted("programs-rate") {
        let bare = programs::bare(report);
        let rate = programs::rate(&stores);
        report.note("process runs, fully recorded", rate, "/s");
        report.note("  of the bare loop", rate * bare, "");
    }
    if wanted("programs-late") {
        programs::lateness(report, &stores);
    }
    if wanted("programs-loaded") {
        programs::loaded_lateness(report, &stores);
    }
}

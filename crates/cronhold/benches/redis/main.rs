//! Nodes on a real Redis: what they reach by themselves, beside Python Cronken on the same server with the same jobs, and
//! several of them when one is killed again and again.
//!
//! `./dev bench redis WORD…` does only what has one of these words in its name: asked, scheduled, at-once, programs-rate,
//! programs-late, beside-late, beside-rate, beside-size, idle; `kills` only if it is named, because it takes minutes, with
//! `seconds=NUMBER` for as long as you say.

#[path = "../shared/account.rs"]
mod account;
#[path = "../shared/at_once.rs"]
mod at_once;
mod idle;
mod kills;
mod late;
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

use std::process::ExitCode;

use cronhold_daemon::clock::SystemClock;

use crate::place::Place;
use crate::report::{Report, Target};
use crate::rig::block_on;

/// Runs in a second that do nothing, at least.
const RUNS_LEAST: f64 = 15_000.0;
/// Nodes that share the work while one of them is killed.
const KILLED_AMONG: [usize; 2] = [2, 3];
/// How long they do, in seconds, if nobody says otherwise.
const KILLS_SECONDS: u64 = 120;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let clock = block_on(async { SystemClock::new().expect("a timer") });
    let mut report = Report::default();
    let mut place = Place::new();
    alone(&mut report, &place, &clock, &wanted);
    for jobs in [200, 500, 1_000] {
        if wanted(&format!("beside-late-{jobs}")) {
            late::measure(&mut report, &mut place, jobs);
        }
    }
    if wanted("beside-rate") {
        rate::measure(&mut report, &mut place, &clock);
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
fn alone(report: &mut Report, place: &Place, clock: &SystemClock, wanted: &dyn Fn(&str) -> bool) {
    let stores = |dir: &std::path::Path| place.store_of(dir);
    if wanted("asked") {
        throughput::asked(report, &stores, RUNS_LEAST);
    }
    if wanted("scheduled") {
        throughput::scheduled(report, &stores, RUNS_LEAST);
    }
    if wanted("at-once") {
        at_once::measure(report, &stores, 1_000, 2, Some(Target::AtMost(25.0)));
    }
    if wanted("programs-rate") {
        let bare = programs::bare(report, clock);
        let rate = programs::rate(&stores);
        report.note("process runs, fully recorded", rate, "/s");
        report.note("  of the bare loop", rate * bare, "");
    }
    if wanted("programs-late") {
        programs::lateness(report, &stores);
    }
}

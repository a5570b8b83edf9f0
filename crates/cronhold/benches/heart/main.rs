//! The heart under load, on a real store, measured in one go beside what the disk alone can do.
//!
//! `cargo bench -p cronhold --bench heart -- WORD…` does only what has one of these words in its name: fsync, timer,
//! asked, scheduled, at-once, programs-rate, programs-late, programs-burden, size; `soak` only if it is named.

mod at_once;
mod fsync;
mod programs;
mod report;
mod rig;
mod size;
mod throughput;
mod timer;

use cronhold_daemon::clock::SystemClock;

use crate::report::{Report, Target};
use crate::rig::block_on;
use crate::size::Limits;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let clock = block_on(async { SystemClock::new().expect("a timer") });
    let mut report = Report::default();
    if wanted("fsync") {
        fsync::measure(&mut report, &clock);
    }
    if wanted("timer") {
        timer::measure(&mut report);
    }
    if wanted("asked") {
        throughput::asked(&mut report);
    }
    if wanted("scheduled") {
        throughput::scheduled(&mut report);
    }
    for (jobs, every, target) in [(1, 1, None), (1_000, 2, Some(Target::AtMost(25.0))), (10_000, 5, None)] {
        if wanted(&format!("at-once-{jobs}")) {
            at_once::measure(&mut report, jobs, every, target);
        }
    }
    if ["programs-rate", "programs-late", "programs-burden"].into_iter().any(&wanted) {
        let bare = programs::bare(&mut report, &clock);
        if wanted("programs-rate") {
            programs::rate(&mut report, bare);
        }
        if wanted("programs-late") {
            programs::lateness(&mut report, bare);
        }
        if wanted("programs-burden") {
            programs::burden(&mut report, &clock);
        }
    }
    for (jobs, limits) in [
        (10_000, Limits::default()),
        (100_000, Limits { megabytes: Some(100.0), seconds: Some(2.0), idle_percent: Some(1.0) }),
        (1_000_000, Limits { megabytes: Some(600.0), ..Limits::default() }),
    ] {
        if wanted(&format!("size-{jobs}")) {
            size::measure(&mut report, &clock, jobs, limits);
        }
    }
    // Takes minutes, so it has to be asked for.
    if words.iter().any(|word| word == "soak") {
        programs::soak(&mut report, 100_000);
    }
    report.print();
    if report.has_missed("soak") {
        std::process::exit(1);
    }
}

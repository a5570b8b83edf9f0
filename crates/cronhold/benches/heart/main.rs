//! Benchmarks of the engine under load, on a real store, together with the speed of the disk alone.
//!
//! `cargo bench -p cronhold --bench heart -- WORD…` runs only benchmarks whose name contains one of the words. The
//! names are fsync, timer, asked, scheduled, at-once, files, programs-rate, programs-late, programs-burden and size.
//! `soak`, `flood` and `rounds` run only if they are named.

#[path = "../shared/account.rs"]
mod account;
#[path = "../shared/at_once.rs"]
mod at_once;
mod burden;
mod files;
mod fsync;
#[path = "../shared/programs.rs"]
mod programs;
#[path = "../shared/report.rs"]
mod report;
#[path = "../shared/rig.rs"]
mod rig;
mod rounds;
mod size;
mod soak;
#[path = "../shared/throughput.rs"]
mod throughput;
mod timer;

use std::path::Path;
use std::process::ExitCode;

use cronhold_daemon::clock::SystemClock;
use cronhold_wiring::StoreUrl;

use crate::report::{Report, Target};
use crate::rig::block_on;
use crate::size::Limits;

/// Target for no-op runs per second.
const RUNS_LEAST: f64 = 20_000.0;

/// The SQLite store in a directory.
pub(crate) fn sqlite(dir: &Path) -> StoreUrl {
    StoreUrl::Sqlite(dir.join("cronhold.db"))
}

fn main() -> ExitCode {
    let all: Vec<String> = std::env::args().skip(1).collect();
    // The rounds start this binary as their program.
    if let Some((verb, rest)) = all.split_first()
        && verb == rounds::VERB
    {
        return rounds::write(rest);
    }
    let words: Vec<String> = all.into_iter().filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let clock = block_on(async { SystemClock::new().expect("a timer") });
    let mut report = Report::default();
    if wanted("fsync") {
        fsync::measure(&mut report);
    }
    if wanted("timer") {
        timer::measure(&mut report);
    }
    if wanted("asked") {
        throughput::asked(&mut report, &sqlite, RUNS_LEAST);
    }
    if wanted("scheduled") {
        throughput::scheduled(&mut report, &sqlite, RUNS_LEAST);
    }
    for (jobs, every, target) in [(1, 1, None), (1_000, 2, Some(Target::AtMost(25.0))), (10_000, 5, None)] {
        if wanted(&format!("at-once-{jobs}")) {
            at_once::measure(&mut report, &sqlite, jobs, every, target);
        }
    }
    if wanted("files") {
        files::measure(&mut report, &clock, 10_000);
    }
    if ["programs-rate", "programs-late", "programs-burden"].into_iter().any(&wanted) {
        let bare = programs::bare(&mut report);
        if wanted("programs-rate") {
            let rate = programs::rate(&sqlite);
            report.compare("process runs, fully recorded", rate, "/s", Target::AtLeast(0.7 / bare));
            report.compare("  of the bare loop", rate * bare, "", Target::AtLeast(0.7));
        }
        if wanted("programs-late") {
            programs::lateness(&mut report, &sqlite);
        }
        if wanted("programs-burden") {
            burden::burden(&mut report, &clock);
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
    // These take minutes, so they run only if they are named.
    if words.iter().any(|word| word == "soak") {
        soak::soak(&mut report, 100_000);
    }
    if words.iter().any(|word| word == "flood") {
        soak::flood(&mut report);
    }
    if words.iter().any(|word| word.starts_with("rounds")) {
        rounds::measure(&mut report, &words);
    }
    report.print();
    ExitCode::from(u8::from(["soak", "flood", "rounds"].into_iter().any(|word| report.has_missed(word))))
}

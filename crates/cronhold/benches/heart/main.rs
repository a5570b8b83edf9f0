//! Benchmarks of the engine under load, on a real store, together with the speed of the disk alone.
//!
//! `cargo bench -p cronhold --bench heart -- WORD…` runs only benchmarks whose name contains one of the words. The
//! names are fsync, timer, asked, scheduled, at-once, files, programs-rate, programs-late, programs-burden,
//! programs-loaded, wake, waiting and size. `growth`, `soak`, `flood` and `rounds` run only if they are named.

#[path = "../shared/account.rs"]
mod account;
#[path = "../shared/at_once.rs"]
mod at_once;
mod burden;
mod files;
mod fsync;
mod growth;
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
mod waiting;
#[path = "../shared/waits.rs"]
mod waits;

use std::path::Path;
use std::process::ExitCode;

use cronhold_daemon::clock::SystemClock;
use cronhold_wiring::StoreUrl;

use crate::report::{Report, Target};
use crate::rig::block_on;
use crate::size::Limits;

/// Target for no-op runs per second on request.
const ASKED_LEAST: f64 = 30_000.0;
/// Schedules that are due every second, and the target for their no-op runs per second. The first number is one that the
/// node keeps up with, and the second is more than it can start.
const SCHEDULED: [(usize, f64); 2] = [(20_000, 19_500.0), (40_000, 25_000.0)];

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
        throughput::asked(&mut report, &sqlite, ASKED_LEAST);
    }
    for (schedules, least) in SCHEDULED {
        if wanted(&format!("scheduled-{schedules}")) {
            throughput::scheduled(&mut report, &sqlite, schedules, least);
        }
    }
    for (jobs, every, target) in [(1, 1, None), (1_000, 2, Some(10.0)), (10_000, 5, Some(200.0))] {
        if wanted(&format!("at-once-{jobs}")) {
            at_once::measure(&mut report, &sqlite, jobs, every, target.map(Target::AtMost));
        }
    }
    for (count, limits) in [(10_000, (1.0, 60.0)), (100_000, (2.5, 150.0))] {
        if wanted(&format!("files-{count}")) {
            files::measure(&mut report, &clock, count, limits);
        }
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
    measure_waits(&mut report, &wanted);
    if wanted("programs-loaded") {
        programs::loaded_lateness(&mut report, &sqlite);
    }
    for (jobs, limits) in [
        (10_000, Limits { megabytes: 40.0, seconds: 0.3, idle_percent: Some(1.0) }),
        (100_000, Limits { megabytes: 100.0, seconds: 1.5, idle_percent: Some(1.0) }),
        (1_000_000, Limits { megabytes: 600.0, seconds: 10.0, idle_percent: None }),
    ] {
        if wanted(&format!("size-{jobs}")) {
            size::measure(&mut report, &clock, jobs, limits);
        }
    }
    measure_named(&mut report, &clock, &words);
    report.print();
    ExitCode::from(u8::from(["soak", "flood", "rounds"].into_iter().any(|word| report.has_missed(word))))
}

/// Runs that wait for others.
fn measure_waits(report: &mut Report, wanted: &dyn Fn(&str) -> bool) {
    if wanted("wake") {
        waiting::wake(report);
    }
    if wanted("waiting") {
        waiting::cost(report);
    }
}

/// Benchmarks that take minutes, so they run only if they are named.
fn measure_named(report: &mut Report, clock: &SystemClock, words: &[String]) {
    if words.iter().any(|word| word == "growth") {
        for jobs in [1_000, 10_000, 100_000, 1_000_000] {
            growth::by_jobs(report, clock, jobs);
        }
        for runs in [1_000, 100_000, 1_000_000] {
            growth::by_runs(report, clock, runs);
        }
    }
    if words.iter().any(|word| word == "soak") {
        soak::soak(report, 100_000);
    }
    if words.iter().any(|word| word == "flood") {
        soak::flood(report);
    }
    if words.iter().any(|word| word.starts_with("rounds")) {
        rounds::measure(report, words);
    }
}

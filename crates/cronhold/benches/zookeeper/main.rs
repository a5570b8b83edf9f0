//! Benchmarks of nodes on a real ZooKeeper: one node on one server and on an ensemble of three, many stored jobs, how runs
//! spread over nodes, and several nodes of which one after the other is killed while members of the ensemble fail.
//!
//! `./dev bench zookeeper WORD…` runs only benchmarks whose name contains one of the words. The names are asked,
//! scheduled, at-once, three-asked, three-scheduled, size, spread and idle. `kills` runs only if it is named, because it
//! takes minutes; `seconds=NUMBER` sets its duration.

#[path = "../shared/account.rs"]
mod account;
#[path = "../shared/at_once.rs"]
mod at_once;
#[path = "../shared/daemons.rs"]
mod daemons;
mod ensemble_kills;
mod idle;
#[path = "../shared/node_kills.rs"]
mod node_kills;
#[path = "../../tests/processes/mod.rs"]
mod processes;
#[path = "../shared/report.rs"]
mod report;
#[path = "../shared/rig.rs"]
#[expect(dead_code, reason = "the benchmarks on other stores use the rest")]
mod rig;
mod size;
mod spread;
#[path = "../shared/throughput.rs"]
mod throughput;

use std::path::Path;
use std::process::ExitCode;

use cronhold_store_zookeeper::testing::{ZooKeeperEnsemble, ZooKeeperServer};
use cronhold_wiring::StoreUrl;

use crate::report::{Report, Target};

/// Targets for no-op runs per second on one server and on an ensemble of three.
const ONE_LEAST: f64 = 4_000.0;
const THREE_LEAST: f64 = 1_500.0;
/// Schedules that are due every second, more than these targets.
const ONE_SCHEDULES: usize = 6_000;
const THREE_SCHEDULES: usize = 3_000;
/// Jobs that are due at one instant, the seconds between two instants, and the milliseconds until all are recorded.
const AT_ONCE: (usize, usize) = (1_000, 5);
const AT_ONCE_MILLIS: f64 = 200.0;
/// The default duration of `kills`, in seconds.
const KILLS_SECONDS: u64 = 300;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    if ["asked", "scheduled", "at-once", "size", "spread", "idle"].into_iter().any(wanted) {
        print_part("one server", |report| on_one_server(report, &wanted));
    }
    if ["three-asked", "three-scheduled"].into_iter().any(wanted) {
        print_part("an ensemble of three", |report| on_three_members(report, &wanted));
    }
    let mut has_missed = false;
    if words.iter().any(|word| word == "kills") {
        let seconds = words.iter().find_map(|word| word.strip_prefix("seconds=")?.parse().ok());
        let report = print_part("an ensemble of three whose members fail", |report| {
            ensemble_kills::measure(report, seconds.unwrap_or(KILLS_SECONDS));
        });
        has_missed = report.has_missed("kills");
    }
    ExitCode::from(u8::from(has_missed))
}

/// Prints the values of a part under its name.
fn print_part(name: &str, measure: impl FnOnce(&mut Report)) -> Report {
    println!("{name}");
    let mut report = Report::default();
    measure(&mut report);
    report.print();
    report
}

fn on_one_server(report: &mut Report, wanted: &dyn Fn(&str) -> bool) {
    let server = ZooKeeperServer::start();
    let stores = |dir: &Path| store_of(dir, |root| server.url(root));
    if wanted("asked") {
        throughput::asked(report, &stores, ONE_LEAST);
    }
    if wanted("scheduled") {
        throughput::scheduled(report, &stores, ONE_SCHEDULES, ONE_LEAST);
    }
    if wanted("at-once") {
        let (jobs, every) = AT_ONCE;
        at_once::measure(report, &stores, jobs, every, Some(Target::AtMost(AT_ONCE_MILLIS)));
    }
    if wanted("spread") {
        spread::measure(report, &server);
    }
    if wanted("size") || wanted("idle") {
        size::measure(report, &server);
    }
    if wanted("idle") {
        idle::measure(report, &server);
    }
}

fn on_three_members(report: &mut Report, wanted: &dyn Fn(&str) -> bool) {
    let ensemble = ZooKeeperEnsemble::start();
    let stores = |dir: &Path| store_of(dir, |root| ensemble.url(root));
    if wanted("three-asked") {
        throughput::asked(report, &stores, THREE_LEAST);
    }
    if wanted("three-scheduled") {
        throughput::scheduled(report, &stores, THREE_SCHEDULES, THREE_LEAST);
    }
}

/// The store of a directory: a root with its name.
fn store_of(dir: &Path, url: impl FnOnce(&str) -> String) -> StoreUrl {
    let name = dir.file_name().expect("a directory has a name").to_string_lossy();
    StoreUrl::parse(&url(&format!("/{name}"))).expect("it is well formed")
}

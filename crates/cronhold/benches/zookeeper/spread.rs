//! How the runs of many jobs spread over three daemons. The order in which nodes claim an occurrence is a hash; a node that
//! is slower than the others by more than a step of that order gets fewer runs.

use std::collections::BTreeMap;
use std::fs;

use cronhold_daemon::bench::samples::number;
use cronhold_schedule::Span;
use cronhold_store_zookeeper::testing::ZooKeeperServer;

use crate::daemons::{Daemon, rest};
use crate::report::Report;
use crate::rig::scratch;

const NAMES: [&str; 3] = ["a", "b", "c"];
/// Jobs that are due every second.
const JOBS: usize = 100;
/// The least number of runs.
const RUNS: usize = 1_000;
/// More runs than there are.
const RUNS_MAX: &str = "100000";
const SETTLE: Span = Span::from_secs(5);
const FOR: Span = Span::from_secs(15);

pub(crate) fn measure(report: &mut Report, server: &ZooKeeperServer) {
    let dir = scratch("spread");
    let jobs = dir.join("jobs");
    fs::create_dir_all(&jobs).expect("a directory");
    for number in 0..JOBS {
        let yaml = "program: {noop: true}\noverlap: allow\nschedule: '* * * * * * *'\n";
        fs::write(jobs.join(format!("job-{number}.yaml")), yaml).expect("a file");
    }
    let (store, jobs) = (server.url("/spread"), jobs.display().to_string());
    let nodes = NAMES.map(|name| Daemon::start(&store, dir.join(name), name, &["--jobs", &jobs]));
    // Until all nodes know each other, the first ones run everything.
    rest(SETTLE);
    let read = || {
        let runs = nodes[0].run_json(&["runs", "--state", "success", "-n", RUNS_MAX]).expect("a node answers");
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for run in runs.as_array().expect("a list") {
            *counts.entry(run["node"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        NAMES.map(|name| counts.get(name).copied().unwrap_or(0))
    };
    let before = read();
    rest(FOR);
    let counts: Vec<usize> = read().iter().zip(before).map(|(after, before)| after.saturating_sub(before)).collect();
    drop(nodes);
    let all: usize = counts.iter().sum();
    assert!(all >= RUNS, "{all} runs");
    report.note("spread over three nodes: runs", number(all as u64), "");
    for (name, place) in [("fewest", counts.iter().min()), ("most", counts.iter().max())] {
        let share = 100.0 * number(*place.expect("three nodes") as u64) / number(all as u64);
        report.note(format!("spread over three nodes: {name} of one node"), share, "%");
    }
    let _ = fs::remove_dir_all(dir);
}

//! The jobs of several nodes under load, and what must hold when all of them have ended: each occurrence has one outcome, no
//! program was started twice, and two programs never ran under the same lock. The tests of different stores include this
//! file as a module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::mpsc::channel;
use std::time::Duration;

use cronhold_schedule::Instant;
use serde_json::Value;

use crate::sandbox::{Sandbox, SandboxServer};

/// Number of jobs of each kind; all are due every second.
const NOOPS: usize = 20;
const PROGRAMS: usize = 20;
const LOCKED: usize = 10;
/// More runs than the test creates.
const RUNS_MAX: &str = "100000";
/// Successful runs without which the test proves nothing.
const SUCCESSES_MIN: usize = 200;

pub(crate) fn put_jobs(sandbox: &Sandbox<impl SandboxServer>) {
    let every_second = "schedule: '* * * * * * *'";
    let put = |kind: &str, count: usize, program: &str| {
        let yaml = format!("program: {program}\n{every_second}\n");
        (0..count).for_each(|n| sandbox.put(&format!("jobs/{kind}-{n}.yaml"), &yaml));
    };
    put("noop", NOOPS, "{noop: true}");
    put("true", PROGRAMS, "['true']");
    let dir = sandbox.path("");
    let dir = dir.display();
    for n in 0..LOCKED {
        // The kernel releases the file lock when the program ends in any way.
        let program = format!(
            "exec 9>>{dir}/lock-{n}; flock -n 9 || echo {n} $CRONHOLD_RUN_ID >>{dir}/overlaps; \
             echo $CRONHOLD_RUN_ID >>{dir}/starts; sleep 0.4"
        );
        let yaml = format!("program: '{program}'\n{every_second}\nlock: locked-{n}\nttl: 5\n");
        sandbox.put(&format!("jobs/locked-{n}.yaml"), &yaml);
    }
}

/// Checks that each occurrence up to `until` has one outcome.
pub(crate) fn check_runs(sandbox: &Sandbox<impl SandboxServer>, until: i64) {
    let result = sandbox.at_store(&["holes", "--until", &Instant::from_secs(until).to_string()]);
    assert_eq!(result.code, Some(0), "{result:?}");
    let mut outcomes: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut states: BTreeMap<String, usize> = BTreeMap::new();
    for run in sandbox.json(&["runs", "-n", RUNS_MAX]).as_array().expect("runs") {
        let text = |name: &str| run[name].as_str().unwrap_or_default().to_owned();
        outcomes.entry((text("job"), text("nominal_time"))).or_default().push(format!("{run}"));
        *states.entry(text("state")).or_default() += 1;
    }
    let doubled: Vec<_> = outcomes.iter().filter(|(_, runs)| runs.len() > 1).collect();
    assert!(doubled.is_empty(), "{doubled:#?}");
    println!("{states:?}");
    let successes = states.get("success").copied().unwrap_or_default();
    assert!(successes >= SUCCESSES_MIN, "{states:?}");
}

/// Checks that no program was started twice, and that no two programs ran under the same lock.
pub(crate) fn check_programs(sandbox: &Sandbox<impl SandboxServer>) {
    let read = |name: &str| fs::read_to_string(sandbox.path(name)).unwrap_or_default();
    assert_eq!(read("overlaps"), "", "two programs ran under the same lock");
    let starts = read("starts");
    let mut seen = BTreeSet::new();
    let twice: Vec<&str> = starts.lines().filter(|run| !seen.insert(*run)).collect();
    assert!(twice.is_empty(), "started twice: {twice:?}");
    assert!(seen.len() > LOCKED, "{starts}");
}

/// The nominal time of a run in seconds.
pub(crate) fn seconds(run: &Value) -> i64 {
    Instant::parse(run["nominal_time"].as_str().expect("a time")).expect("an instant").secs()
}

/// Sleeps. No check depends on the duration.
pub(crate) fn sleep(millis: u64) {
    let (_sender, receiver) = channel::<()>();
    let _ = receiver.recv_timeout(Duration::from_millis(millis));
}

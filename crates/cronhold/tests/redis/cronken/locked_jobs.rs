//! A locked job starts once per occurrence on either side, also when either side is suspended, stopped or killed at the
//! worst moment.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::RangeInclusive;

use cronhold_daemon::clock::now;
use rustix::process::Signal;
use serde_json::{Map, Value, json};

use super::mixed_nodes::{MixedNodes, RARELY, signal};
use crate::processes::eventually;

/// Jobs with their commands. A job that ends before the other side checks the lock is the hardest case.
const JOBS: [(&str, &str); 3] = [("quick", "true"), ("brief", "sleep 0.3"), ("slow", "sleep 1.5")];
/// Seconds between two occurrences.
const PERIOD: u64 = 4;

#[test]
fn locked_job_starts_once_per_occurrence_on_either_side() {
    let mut mixed_nodes = MixedNodes::new("once");
    let jobs: Map<String, Value> =
        JOBS.iter().map(|(name, work)| ((*name).to_owned(), locked(&mixed_nodes, name, work))).collect();
    mixed_nodes.client.call("set_jobs", json!({"jobs": jobs}));
    let ours = mixed_nodes.ours("ours", "");
    let theirs = mixed_nodes.python("theirs", RARELY);
    let mut alone = BTreeSet::new();
    watch(&mixed_nodes, 2);
    wait_until_idle(&mut mixed_nodes);
    // Ours is late: theirs has run and released the lock.
    ours.send(Signal::STOP);
    alone.extend(watch(&mixed_nodes, 1));
    ours.send(Signal::CONT);
    watch(&mixed_nodes, 1);
    wait_until_idle(&mut mixed_nodes);
    // Theirs is late: ours has run.
    signal(&theirs, Signal::STOP);
    watch(&mixed_nodes, 1);
    signal(&theirs, Signal::CONT);
    watch(&mixed_nodes, 1);
    wait_until_idle(&mut mixed_nodes);
    // Ours is stopped for a while. At its start it finds occurrences that were due in the meantime.
    ours.stop();
    alone.extend(watch(&mixed_nodes, 1));
    let ours = mixed_nodes.ours("ours", "");
    watch(&mixed_nodes, 1);
    wait_until_idle(&mut mixed_nodes);
    drop(theirs);
    watch(&mixed_nodes, 1);
    let theirs = mixed_nodes.python("theirs", RARELY);
    watch(&mixed_nodes, 1);
    drop(theirs);
    assert_one_start_per_period(&mixed_nodes, &alone);
    let runs = ours.runs("quick");
    assert!(runs.iter().any(is_theirs), "our node records which occurrences ran on theirs: {runs:#?}");
}

/// A job of Cronken that writes its start time and the side that started it.
fn locked(mixed_nodes: &MixedNodes, name: &str, work: &str) -> Value {
    let file = mixed_nodes.path(name).display().to_string();
    let cmd = format!("echo \"$EPOCHREALTIME ${{CRONHOLD_RUN_ID:+ours}}\" >> {file}; {work}");
    json!({"cron_args": {"second": format!("*/{PERIOD}")}, "job_args": {"cmd": cmd, "lock": true, "ttl": 10}})
}

fn is_theirs(run: &Value) -> bool {
    run["state"] == "skipped" && run["reason"].as_str().is_some_and(|reason| reason == "ran on Cronken theirs")
}

/// Waits until every job has started in `more` further periods. Returns the periods that have begun in the meantime.
fn watch(mixed_nodes: &MixedNodes, more: usize) -> RangeInclusive<u64> {
    let period = || now().secs().unsigned_abs() / PERIOD;
    let count = |name: &str| mixed_nodes.periods(name, PERIOD).len();
    let (begin, before) = (period(), JOBS.map(|(name, _)| count(name)));
    eventually("the jobs start", || JOBS.iter().zip(before).all(|((name, _), before)| count(name) >= before + more));
    begin + 1..=period()
}

/// Waits until nothing runs. A node that is killed with a lock blocks the job until the lock expires.
fn wait_until_idle(mixed_nodes: &mut MixedNodes) {
    eventually("nothing runs", || mixed_nodes.client.call("dashboard", json!({}))["active"] == json!([]));
}

/// Asserts that each period has one start of each job, and that both sides had some. In periods in which Python was
/// alone there may be none, because Python drops occurrences that are more than a second late.
fn assert_one_start_per_period(mixed_nodes: &MixedNodes, alone: &BTreeSet<u64>) {
    let mut wrong = String::new();
    let (mut ours, mut theirs) = (0, 0);
    for (name, _) in JOBS {
        let periods = mixed_nodes.periods(name, PERIOD);
        let (first, last) = (*periods.keys().next().expect("it ran"), *periods.keys().last().expect("it ran"));
        for period in first..=last {
            match periods.get(&period).map_or(&[][..], Vec::as_slice) {
                [who] if who == "ours" => ours += 1,
                [_] => theirs += 1,
                [] if alone.contains(&period) => {}
                all => writeln!(wrong, "{name} at {}: {all:?}", period * PERIOD).expect("a String accepts all text"),
            }
        }
    }
    assert!(wrong.is_empty(), "not exactly one start; `ours` is our node, an empty name is Python:\n{wrong}");
    println!("{ours} starts were ours, {theirs} were Python's");
    assert!(ours > 0 && theirs > 0, "one side never started a job: {ours} starts were ours, {theirs} were Python's");
}

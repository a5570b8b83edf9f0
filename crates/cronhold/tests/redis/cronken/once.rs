//! A locked job starts once per occurrence, whichever side is first, while either side is frozen, stopped or killed at
//! the worst moment.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::RangeInclusive;

use cronhold_daemon::clock::now;
use rustix::process::Signal;
use serde_json::{Map, Value, json};

use super::scene::{RARELY, Scene, signal};
use crate::processes::eventually;

/// Jobs, each with how long it takes. What is over before the other side looks is the hardest.
const JOBS: [(&str, &str); 3] = [("quick", "true"), ("brief", "sleep 0.3"), ("slow", "sleep 1.5")];
/// Seconds between two occurrences.
const PERIOD: u64 = 4;

#[test]
fn locked_job_starts_once_per_occurrence_on_either_side() {
    let mut scene = Scene::new("once");
    let jobs: Map<String, Value> =
        JOBS.iter().map(|(name, work)| ((*name).to_owned(), locked(&scene, name, work))).collect();
    scene.client.ask("set_jobs", json!({"jobs": jobs}));
    let ours = scene.ours("ours", "");
    let theirs = scene.python("theirs", RARELY);
    let mut alone = BTreeSet::new();
    watch(&scene, 2);
    calm(&mut scene);
    // Ours comes late, when theirs has run and has let go of the lock.
    ours.send(Signal::STOP);
    alone.extend(watch(&scene, 1));
    ours.send(Signal::CONT);
    watch(&scene, 1);
    calm(&mut scene);
    // Theirs comes late, when ours has run.
    signal(&theirs, Signal::STOP);
    watch(&scene, 1);
    signal(&theirs, Signal::CONT);
    watch(&scene, 1);
    calm(&mut scene);
    // Ours is away for a while, and finds at its start what was due meanwhile.
    ours.stop();
    alone.extend(watch(&scene, 1));
    let ours = scene.ours("ours", "");
    watch(&scene, 1);
    calm(&mut scene);
    drop(theirs);
    watch(&scene, 1);
    let theirs = scene.python("theirs", RARELY);
    watch(&scene, 1);
    drop(theirs);
    judge(&scene, &alone);
    let runs = ours.runs("quick");
    assert!(runs.iter().any(is_theirs), "our node says which occurrences ran on theirs: {runs:#?}");
}

/// A job of Cronken that writes when it starts, and who started it.
fn locked(scene: &Scene, name: &str, work: &str) -> Value {
    let file = scene.path(name).display().to_string();
    let cmd = format!("echo \"$EPOCHREALTIME ${{CRONHOLD_RUN_ID:+ours}}\" >> {file}; {work}");
    json!({"cron_args": {"second": format!("*/{PERIOD}")}, "job_args": {"cmd": cmd, "lock": true, "ttl": 10}})
}

fn is_theirs(run: &Value) -> bool {
    run["state"] == "skipped" && run["reason"].as_str().is_some_and(|reason| reason == "ran on Cronken theirs")
}

/// Waits until every job has started in so many periods more, and tells which periods have begun meanwhile.
fn watch(scene: &Scene, more: usize) -> RangeInclusive<u64> {
    let period = || now().secs().unsigned_abs() / PERIOD;
    let count = |name: &str| scene.periods(name, PERIOD).len();
    let (begin, before) = (period(), JOBS.map(|(name, _)| count(name)));
    eventually("the jobs start", || JOBS.iter().zip(before).all(|((name, _), before)| count(name) >= before + more));
    begin + 1..=period()
}

/// Waits until nothing runs: who dies with a lock keeps it from everybody until its ttl has passed.
fn calm(scene: &mut Scene) {
    eventually("nothing runs", || scene.client.ask("dashboard", json!({}))["active"] == json!([]));
}

/// Each period between the first and the last has one start of each job, and both sides had some. Where Python was alone
/// there may be none: it drops what it comes to more than a second late.
fn judge(scene: &Scene, alone: &BTreeSet<u64>) {
    let mut wrong = String::new();
    let (mut ours, mut theirs) = (0, 0);
    for (name, _) in JOBS {
        let periods = scene.periods(name, PERIOD);
        let (first, last) = (*periods.keys().next().expect("it ran"), *periods.keys().last().expect("it ran"));
        for period in first..=last {
            match periods.get(&period).map_or(&[][..], Vec::as_slice) {
                [who] if who == "ours" => ours += 1,
                [_] => theirs += 1,
                [] if alone.contains(&period) => {}
                all => writeln!(wrong, "{name} at {}: {all:?}", period * PERIOD).expect("memory takes everything"),
            }
        }
    }
    assert!(wrong.is_empty(), "not one start at these times; `ours` is by us, nothing is by Python:\n{wrong}");
    println!("{ours} starts were ours, {theirs} were Python's");
    assert!(ours > 0 && theirs > 0, "one side never won: {ours} starts were ours, {theirs} were Python's");
}

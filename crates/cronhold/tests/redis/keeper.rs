//! Two nodes on one Redis, of which one has a keeper that hangs or cannot be started. The other node takes its share.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::processes::{eventually, keeper_of};
use crate::sandbox::{Node, Sandbox};

const JOBS: usize = 8;
/// More runs than a test creates.
const RUNS_MAX: &str = "100000";
/// States of runs without a program.
const NOT_STARTED: &str = "scheduled,waiting,starting";

/// Two nodes, and jobs that are due every second and record the ids of their runs.
fn nodes(sandbox: &Sandbox) -> (Node, Node) {
    let starts = sandbox.path("starts");
    for number in 0..JOBS {
        let program = format!("echo $CRONHOLD_RUN_ID >>{}", starts.display());
        sandbox.put(&format!("jobs/tick-{number}.yaml"), &format!("program: '{program}'\nschedule: {{every: 1s}}\n"));
    }
    let nodes = (sandbox.up("one", &["--jobs", "jobs"]), sandbox.up("other", &["--jobs", "jobs"]));
    eventually("both run something", || count(sandbox, "one") > 0 && count(sandbox, "other") > 0);
    nodes
}

fn runs(sandbox: &Sandbox, states: &str) -> Vec<Value> {
    sandbox.json(&["runs", "--state", states, "-n", RUNS_MAX]).as_array().expect("runs").clone()
}

/// Number of runs that succeeded on a node.
fn count(sandbox: &Sandbox, node: &str) -> usize {
    runs(sandbox, "success").iter().filter(|run| run["node"] == node).count()
}

fn problem(sandbox: &Sandbox, name: &str) -> Option<String> {
    let nodes = sandbox.json(&["nodes"]);
    let node = nodes.as_array().expect("nodes").iter().find(|node| node["name"] == name).expect("a node");
    node["keeper_problem"].as_str().map(str::to_owned)
}

/// Breaks the keeper of one node, and asserts that the other one does all its work until the keeper is repaired.
fn assert_taken_over(name: &str, fail: impl FnOnce(&Sandbox), repair: impl FnOnce(&Sandbox)) {
    let sandbox = Sandbox::new(name);
    let (one, other) = nodes(&sandbox);
    fail(&sandbox);
    other.wait_until_logged("keeper_failed", &[]);
    eventually("its record says so", || problem(&sandbox, "other").is_some());
    sandbox.at_store(&["nodes"]).exits(0).prints("starts nothing");
    eventually("every launch has an outcome", || runs(&sandbox, NOT_STARTED).iter().all(|run| run["node"] != "other"));
    let errors = runs(&sandbox, "error").len();
    assert!(errors <= JOBS * 8, "only what was under way can be lost: {errors}");
    let before = (count(&sandbox, "one"), count(&sandbox, "other"));
    eventually("the other node runs everything", || count(&sandbox, "one") >= before.0 + 5 * JOBS);
    assert_eq!(count(&sandbox, "other"), before.1, "it claims nothing");
    assert_eq!(runs(&sandbox, "error").len(), errors, "nothing is lost after that");
    repair(&sandbox);
    other.wait_until_logged("keeper_ready", &[]);
    eventually("it takes its share again", || count(&sandbox, "other") > before.1 + JOBS);
    assert_eq!(problem(&sandbox, "other"), None);
    let starts = fs::read_to_string(sandbox.path("starts")).expect("programs ran");
    let ids: BTreeSet<&str> = starts.lines().collect();
    assert_eq!(ids.len(), starts.lines().count(), "no program was started twice");
    assert_no_late_starts(&sandbox, &ids);
    one.stop();
    other.stop();
}

/// A run that counts as not launched has no program.
fn assert_no_late_starts(sandbox: &Sandbox, started: &BTreeSet<&str>) {
    let is_unlaunched = |run: &Value| run["reason"].as_str().is_some_and(|reason| reason.contains("not launched"));
    for run in runs(sandbox, "error").iter().filter(|run| is_unlaunched(run)) {
        assert!(!started.contains(run["id"].as_str().expect("an id")), "{run}");
    }
}

fn signal_keeper(sandbox: &Sandbox, signal: Signal) {
    kill_process(keeper_of(&sandbox.path("other")).expect("a keeper"), signal).expect("it runs");
}

#[test]
fn share_of_a_node_with_a_hung_keeper_is_taken_over() {
    assert_taken_over(
        "hung-keeper",
        |sandbox| signal_keeper(sandbox, Signal::STOP),
        |sandbox| signal_keeper(sandbox, Signal::CONT),
    );
}

#[test]
fn share_of_a_node_without_a_keeper_is_taken_over() {
    let paths = |sandbox: &Sandbox| (sandbox.path("other/keeper"), sandbox.path("other/keeper-away"));
    assert_taken_over(
        "no-keeper",
        |sandbox| {
            let (keeper, away) = paths(sandbox);
            fs::rename(&keeper, &away).expect("renamed");
            fs::write(&keeper, "").expect("written");
            signal_keeper(sandbox, Signal::KILL);
        },
        |sandbox| {
            let (keeper, away) = paths(sandbox);
            fs::remove_file(&keeper).expect("removed");
            fs::rename(&away, &keeper).expect("renamed");
        },
    );
}

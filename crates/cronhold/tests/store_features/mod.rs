//! What jobs can do, on two nodes that share a store: args, conditions and pools, actions, batched triggers, backfill,
//! pauses, renaming, and operations on many runs. The tests of different stores include this file as a module.

use std::fs;

use serde_json::Value;

use crate::processes::eventually;
use crate::sandbox::{Node, Sandbox, SandboxServer};

/// Places of the pool, and runs that compete for them.
const PLACES: usize = 2;
const COMPETITORS: usize = 6;
/// Occurrences that are made up for.
const YEARS: usize = 4;
/// More runs than the test creates.
const RUNS_MAX: &str = "10000";

/// Two nodes with labels of their own, so that jobs can require one of them.
fn start_nodes(sandbox: &Sandbox<impl SandboxServer>) -> [Node; 2] {
    let nodes = ["one", "other"].map(|name| sandbox.start(name, &["--label", name]));
    nodes.iter().for_each(Node::wait_until_ready);
    nodes
}

/// Adds a job from a file.
fn add(sandbox: &Sandbox<impl SandboxServer>, job: &str, yaml: &str) {
    let file = format!("{}.yaml", job.replace('/', "-"));
    sandbox.put(&file, yaml);
    sandbox.done(&["add", job, "-f", &file]);
}

fn runs(sandbox: &Sandbox<impl SandboxServer>, args: &[&str]) -> Vec<Value> {
    let list = sandbox.json(&[&["runs", "-n", RUNS_MAX], args].concat());
    list.as_array().expect("runs").clone()
}

/// Checks all of it on a new store.
pub(crate) fn check_features(sandbox: &Sandbox<impl SandboxServer>) {
    let nodes = start_nodes(sandbox);
    check_conditions_and_actions(sandbox);
    check_pool(sandbox);
    check_triggers(sandbox);
    check_backfill_and_pause(sandbox);
    check_rename_and_bulk(sandbox);
    nodes.into_iter().for_each(Node::stop);
}

/// A run on one node waits for a run with the same args on the other one, whose end also starts a third one.
fn check_conditions_and_actions(sandbox: &Sandbox<impl SandboxServer>) {
    let on = "on: {success: [{run: {job: report, args: {what: '{{ job }}'}}}]}";
    add(sandbox, "report", "program: [sh, -c, 'echo $CRONHOLD_ARG_WHAT']\nparams: [what, day]\n");
    add(sandbox, "load", &format!("program: ['true']\nparams: [day]\nnodes: [one]\n{on}\n"));
    let after =
        "program: [sh, -c, 'echo $CRONHOLD_ARG_DAY']\nparams: [day]\nnodes: [other]\nconditions: [{after: load}]\n";
    add(sandbox, "clean", after);
    sandbox.done(&["run", "clean", "day=mon"]);
    sandbox.done(&["run", "load", "day=tue"]);
    sandbox.wait_for("load#1", "success");
    assert_eq!(sandbox.json(&["runs", "clean#1"])[0]["state"], "waiting", "its args are different");
    sandbox.at_store(&["why", "clean#1"]).exits(0).prints("load");
    sandbox.done(&["run", "load", "day=mon"]);
    sandbox.wait_for("clean#1", "success");
    assert_eq!(sandbox.done(&["logs", "clean#1"]).trim(), "mon");
    let clean = sandbox.json(&["show", "clean#1"]);
    assert_eq!((clean["node"].as_str(), clean["args"]["day"].as_str()), (Some("other"), Some("mon")), "{clean}");
    for number in 1..=2 {
        let run = format!("report#{number}");
        eventually("the action has created a run", || sandbox.at_store(&["show", &run]).code == Some(0));
        sandbox.wait_for(&run, "success");
        assert_eq!(sandbox.done(&["logs", &run]).trim(), "load");
    }
}

/// Runs of several jobs on both nodes share the places of a pool.
fn check_pool(sandbox: &Sandbox<impl SandboxServer>) {
    let log = sandbox.path("pool");
    for number in 0..COMPETITORS {
        let program = format!("echo begin >>{log}; sleep 0.1; echo end >>{log}", log = log.display());
        let pool = format!("conditions: [{{max_running: {{count: {PLACES}, pool: db}}}}]");
        add(sandbox, &format!("pool/{number}"), &format!("program: '{program}'\n{pool}\n"));
        sandbox.done(&["run", &format!("pool/{number}")]);
    }
    for number in 0..COMPETITORS {
        sandbox.wait_for(&format!("pool/{number}#1"), "success");
    }
    let (mut active, mut most) = (0_usize, 0);
    for line in fs::read_to_string(&log).expect("the programs have run").lines() {
        active = if line == "begin" { active + 1 } else { active - 1 };
        most = most.max(active);
    }
    assert!(active == 0 && most <= PLACES, "{most} at once");
    let pools = sandbox.json(&["pools"]);
    assert_eq!((&pools[0]["name"], &pools[0]["size"], &pools[0]["active"]), (&"db".into(), &PLACES.into(), &0.into()));
}

/// Triggers that arrive while a run is active share the next one, and each counts once.
fn check_triggers(sandbox: &Sandbox<impl SandboxServer>) {
    let gate = sandbox.path("gate");
    let wait = format!("until [ -e {} ]; do sleep 0.05; done; echo $CRONHOLD_TRIGGERS", gate.display());
    add(sandbox, "build", &format!("program: '{wait}'\nbatching: greedy\n"));
    sandbox.done(&["trigger", "build", "--id", "t1"]);
    eventually("the trigger has a run", || sandbox.at_store(&["show", "build#1"]).code == Some(0));
    sandbox.wait_for("build#1", "running");
    for id in ["t2", "t3", "t3", "t4"] {
        sandbox.done(&["trigger", "build", "--id", id]);
    }
    sandbox.at_store(&["triggers", "build"]).exits(0).prints("3 pending triggers");
    sandbox.at_store(&["triggers", "build", "--remove", "t4"]).exits(0).prints("removed 1 pending trigger");
    sandbox.put("gate", "");
    eventually("the pending triggers have a run", || sandbox.at_store(&["show", "build#2"]).code == Some(0));
    sandbox.wait_for("build#2", "success");
    sandbox.at_store(&["show", "build#2"]).exits(0).prints("t2, t3");
    assert_eq!(runs(sandbox, &["build"]).len(), 2);
}

fn check_backfill_and_pause(sandbox: &Sandbox<impl SandboxServer>) {
    add(sandbox, "yearly", "program: ['true']\nschedule: 0 0 1 1 *\n");
    sandbox.done(&["pause", "yearly", "--why", "tea"]);
    sandbox.at_store(&["why", "yearly"]).exits(0).prints("tea");
    let period = ["backfill", "yearly", "--from", "2020-01-01", "--to", "2023-06-01"];
    for _ in 0..2 {
        sandbox.done(&period);
        eventually("all years have run", || runs(sandbox, &["yearly", "--state", "success"]).len() == YEARS);
    }
    assert_eq!(runs(sandbox, &["yearly"]).len(), YEARS, "each occurrence runs once");
    sandbox.done(&["resume", "yearly"]);
    sandbox.at_store(&["resume", "yearly"]).exits(0).prints("is not paused");
}

/// Runs keep their numbers under another name, and all failed runs are run again by one command.
fn check_rename_and_bulk(sandbox: &Sandbox<impl SandboxServer>) {
    let fixed = sandbox.path("fixed");
    add(sandbox, "old", &format!("program: 'test -e {}'\noverlap: allow\nparams: [part]\n", fixed.display()));
    for part in ["part=a", "part=b"] {
        sandbox.done(&["run", "old", part]);
    }
    (1..=2).for_each(|number| sandbox.wait_for(&format!("old#{number}"), "failure"));
    sandbox.done(&["run", "old", "part=c", "--at", "2h"]);
    sandbox.done(&["rename", "old", "team/new"]);
    sandbox.at_store(&["show", "old"]).exits(1);
    assert_eq!(sandbox.json(&["show", "team/new#3"])["state"], "scheduled");
    sandbox.put("fixed", "");
    let rerun = ["rerun", "--failed", "--since", "1h", "--job", "team/*", "--yes"];
    sandbox.at_store(&rerun).exits(0).prints("reran 2 runs");
    (4..=5).for_each(|number| sandbox.wait_for(&format!("team/new#{number}"), "success"));
    sandbox.at_store(&rerun).exits(0).prints("nothing to rerun");
    sandbox.at_store(&["skip", "--job", "team/*", "--yes"]).exits(0);
    assert_eq!(sandbox.json(&["show", "team/new#3"])["state"], "skipped");
}

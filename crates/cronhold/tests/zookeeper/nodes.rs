//! Two nodes on one ZooKeeper. One is killed and started again, one is suspended for longer than its session lasts, and
//! ZooKeeper itself is restarted. Each occurrence has one outcome, and no two programs run under the same lock.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::processes::eventually;
use crate::sandbox::{Sandbox, SandboxServer};

/// More runs than the test creates.
const RUNS_MAX: &str = "10000";

fn runs(sandbox: &Sandbox, args: &[&str]) -> Vec<Value> {
    let list = sandbox.json(&[&["runs", "-n", RUNS_MAX], args].concat());
    list.as_array().expect("runs").clone()
}

fn successes_of(sandbox: &Sandbox, node: &str) -> usize {
    runs(sandbox, &["--state", "success"]).iter().filter(|run| run["node"] == node).count()
}

#[test]
fn every_occurrence_has_one_outcome_on_two_nodes() {
    let mut sandbox = Sandbox::new("two-nodes");
    let dir = sandbox.path("");
    let locked = format!(
        "exec 9>>{dir}/lock; flock -n 9 || echo $CRONHOLD_RUN_ID >>{dir}/overlaps; sleep 0.2",
        dir = dir.display()
    );
    for job in ["hello", "bye"] {
        sandbox.done(&["add", job, "* * * * * * *", "--", "echo", job]);
    }
    sandbox.done(&["add", "locked", "--lock", "l", "* * * * * * *", "--", "sh", "-c", &locked]);
    let (mut one, other) = (sandbox.up("one", &[]), sandbox.up("other", &[]));
    let listed = sandbox.done(&["nodes"]);
    assert!(listed.contains("one") && listed.contains("other"), "{listed}");
    eventually("both run something", || ["one", "other"].iter().all(|node| successes_of(&sandbox, node) > 0));

    one.kill();
    let before = successes_of(&sandbox, "other");
    eventually("the other node continues", || successes_of(&sandbox, "other") > before + 5);
    one.start_again();
    eventually("the node is ready again", || one.logged("ready").len() > 1);

    // Longer than the session lasts, so that the node needs a new one.
    other.send(Signal::STOP);
    let before = successes_of(&sandbox, "one");
    eventually("the first node continues", || successes_of(&sandbox, "one") > before + 15);
    other.send(Signal::CONT);
    let before = successes_of(&sandbox, "other");
    eventually("the suspended node continues", || successes_of(&sandbox, "other") > before);

    sandbox.server.restart();
    let before = runs(&sandbox, &["--state", "success"]).len();
    eventually("both nodes continue after a restart of ZooKeeper", || {
        runs(&sandbox, &["--state", "success"]).len() > before + 10
    });

    sandbox.done(&["pause", "all"]);
    eventually("everything has ended", || {
        runs(&sandbox, &["--state", "scheduled,waiting,starting,running,stopping"]).is_empty()
    });
    let mut outcomes: BTreeMap<(String, String), usize> = BTreeMap::new();
    for run in runs(&sandbox, &[]) {
        let text = |name: &str| run[name].as_str().unwrap_or_default().to_owned();
        *outcomes.entry((text("job"), text("nominal_time"))).or_default() += 1;
    }
    let doubled: Vec<_> = outcomes.iter().filter(|(_, count)| **count > 1).collect();
    assert!(doubled.is_empty(), "{doubled:?}");
    sandbox.done(&["holes"]);
    assert_eq!(fs::read_to_string(sandbox.path("overlaps")).unwrap_or_default(), "", "two programs had the lock");
}

#[test]
fn node_refuses_an_ensemble_that_was_wiped() {
    let mut sandbox = Sandbox::new("wiped");
    sandbox.done(&["add", "hello", "* * * * * * *", "--", "echo", "hi"]);
    let mut one = sandbox.up("one", &[]);
    eventually("something runs", || successes_of(&sandbox, "one") > 0);
    one.send(Signal::TERM);
    eventually("the node has stopped", || one.ended() == Some(0));
    sandbox.server.restart_empty();
    let url = sandbox.server.store_url();
    let up = ["up", "--name", "one", "--data", "one", "--listen", "127.0.0.1:0", "--store", &url];
    let output = sandbox.run_command(&up).prints("rolled back").prints("restore the ensemble");
    assert_ne!(output.code, Some(0), "{output:?}");
    // A command has no memory of the ensemble.
    sandbox.at_store(&["list"]).exits(0).prints("no jobs");
}

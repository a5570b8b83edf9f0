//! Three nodes on an ensemble of three, under load. Nodes are killed and suspended for longer than a session lasts, and the
//! ensemble loses its leader, a member, and its majority. Each occurrence has one outcome, no program is started twice,
//! and two programs never run under the same lock.

use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use crate::cluster_load::{check_programs, check_runs, put_jobs, seconds, sleep};
use crate::processes::eventually;
use crate::sandbox::{Node, Sandbox, SandboxServer};

const NAMES: [&str; 3] = ["a", "b", "c"];
/// Longer than a session lasts, in milliseconds, and in seconds.
const SESSION_MILLIS: u64 = 6_000;
const SESSION_SECS: i64 = 6;
/// More runs than the test creates.
const RUNS_MAX: &str = "100000";
/// States of unfinished runs.
const OPEN: &str = "scheduled,waiting,starting,running,stopping";

#[test]
fn every_occurrence_has_one_outcome_although_nodes_and_members_fail() {
    let mut sandbox = Sandbox::of_three("cluster");
    put_jobs(&sandbox);
    let mut nodes = NAMES.map(|name| sandbox.start(name, &["--jobs", "jobs"]));
    nodes.iter().for_each(Node::wait_until_ready);
    eventually("each node runs something", || {
        let runs = runs(&sandbox, "success", RUNS_MAX).unwrap_or_default();
        NAMES.iter().all(|name| runs.iter().any(|run| run["node"] == *name))
    });

    nodes[0].kill();
    wait_until_runs_continue(&sandbox, 2);
    nodes[0].start_again();
    nodes[1].send(Signal::STOP);
    wait_until_runs_continue(&sandbox, SESSION_SECS);
    nodes[1].send(Signal::CONT);

    let leader = sandbox.server.kill_leader();
    wait_until_runs_continue(&sandbox, 2);
    nodes[2].kill();
    sandbox.server.start_member(leader);
    nodes[2].start_again();
    let follower = sandbox.server.kill_follower();
    wait_until_runs_continue(&sandbox, 2);

    // One of three members is left.
    let leader = sandbox.server.kill_leader();
    nodes[0].kill();
    nodes[0].start_again();
    sleep(SESSION_MILLIS);
    sandbox.server.start_members(&[leader, follower]);
    wait_until_runs_continue(&sandbox, 2);

    let until = now();
    eventually("all runs that were due are finished", || {
        let open = runs(&sandbox, OPEN, RUNS_MAX);
        open.is_some_and(|open| open.iter().all(|run| seconds(run) > until))
    });
    check_runs(&sandbox, until);
    check_programs(&sandbox);
    for node in &mut nodes {
        assert_eq!(node.ended(), None, "{}", node.log_text());
    }
}

/// Waits until runs have succeeded that were due a number of seconds after this call, or later.
fn wait_until_runs_continue(sandbox: &Sandbox<impl SandboxServer>, secs: i64) {
    let wanted = now() + secs;
    eventually("runs continue", || {
        runs(sandbox, "success", "20").is_some_and(|runs| runs.iter().any(|run| seconds(run) >= wanted))
    });
}

/// Runs in some states; `None` if the ensemble has no leader at the moment.
fn runs(sandbox: &Sandbox<impl SandboxServer>, states: &str, limit: &str) -> Option<Vec<Value>> {
    let output = sandbox.at_store(&["runs", "-o", "json", "--state", states, "-n", limit]);
    serde_json::from_str(&output.out).ok()
}

/// The seconds of the clock of this machine, which is that of every member.
fn now() -> i64 {
    clock_gettime(ClockId::Realtime).tv_sec
}

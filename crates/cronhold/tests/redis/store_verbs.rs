//! Verbs on a store without a daemon, and a daemon that starts later and uses what they stored.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::processes::eventually;
use crate::sandbox::Sandbox;
use crate::store_features::check_features;

#[test]
fn jobs_are_managed_without_a_daemon() {
    let sandbox = Sandbox::new("jobs");
    assert_eq!(sandbox.json(&["nodes"]), serde_json::json!([]));
    sandbox.at_store(&["list"]).exits(0).prints("no jobs");
    sandbox.at_store(&["add", "hello", "triggered", "echo", "hi"]).exits(0).prints("added `hello`");
    sandbox.at_store(&["add", "hello", "triggered", "echo", "hi"]).exits(1).prints("hello");
    sandbox.at_store(&["add", "nightly", "30 2 * * *", "true"]).exits(0).prints("next");
    sandbox.at_store(&["list"]).exits(0).prints("hello").prints("nightly");
    sandbox.at_store(&["show", "hello"]).exits(0).prints("echo");
    sandbox.at_store(&["show", "helo"]).exits(1).prints("did you mean `hello`?");
    sandbox.at_store(&["upd", "hello", "--timeout", "1h"]).exits(0);
    sandbox.at_store(&["show", "hello"]).exits(0).prints("1h");
    sandbox.at_store(&["next", "nightly", "-n", "1"]).exits(0).prints("02:30");
    sandbox.at_store(&["pause", "nightly", "--why", "tea"]).exits(0).prints("paused");
    sandbox.at_store(&["why", "nightly"]).exits(0).prints("by ada (tea)");
    assert_eq!(sandbox.server.cli(&["SMEMBERS", "{cronken}:jobs:paused"]), "nightly");
    sandbox.at_store(&["resume", "nightly"]).exits(0);
    assert_eq!(sandbox.server.cli(&["SMEMBERS", "{cronken}:jobs:paused"]), "");
    sandbox.at_store(&["holes"]).exits(0);
    sandbox.at_store(&["backfill", "nightly", "--from", "3d", "--dry-run"]).exits(0);
    // When the command has exited, other programs that share the store see the jobs as definitions.
    let definitions = sandbox.server.cli(&["HKEYS", "{cronken}:jobs"]);
    assert!(definitions == "hello\nnightly" || definitions == "nightly\nhello", "{definitions}");
    sandbox.at_store(&["del", "nightly"]).exits(0);
    assert_eq!(sandbox.server.cli(&["HKEYS", "{cronken}:jobs"]), "hello");
    sandbox.at_store(&["list"]).exits(0).prints("hello").omits("nightly");
}

#[test]
fn runs_without_a_daemon_wait_for_a_node() {
    let sandbox = Sandbox::new("runs");
    sandbox.done(&["add", "hello", "triggered", "echo", "hi"]);
    for _ in 0..3 {
        sandbox.at_store(&["run", "hello"]).exits(0);
    }
    assert_eq!(sandbox.json(&["runs", "hello"]).as_array().map(Vec::len), Some(3));
    sandbox.at_store(&["skip", "hello#1"]).exits(0);
    sandbox.at_store(&["stop", "hello#2"]).exits(1).prints("the run has not started yet");
    sandbox.at_store(&["skip", "hello#2"]).exits(0);
    sandbox.at_store(&["mark", "hello#1", "success", "--why", "by hand"]).exits(0);
    assert_eq!(sandbox.json(&["runs", "hello#1"])[0]["state"], "success");
    sandbox.at_store(&["why", "hello"]).exits(0).prints("hello#3");

    // A node that starts later finds the jobs and the waiting runs.
    let node = sandbox.up("one", &[]);
    sandbox.wait_for("hello#3", "success");
    sandbox.at_store(&["logs", "hello#3"]).exits(0).prints("hi");
    sandbox.at_store(&["nodes"]).exits(0).prints("one");
    let waited = sandbox.at_store(&["run", "hello", "--wait"]).exits(0);
    assert_eq!(waited.out, "hi\n", "{waited:?}");
    sandbox.at_store(&["rerun", "hello#4"]).exits(0);
    sandbox.wait_for("hello#5", "success");
    // A daemon gives the same answer.
    let asked = sandbox.run_command(&["list", "--data", "one"]).exits(0);
    assert_eq!(asked.out, sandbox.done(&["list"]));
    node.stop();
}

#[test]
fn run_is_skipped_through_the_store_as_on_a_node() {
    let sandbox = Sandbox::new("overlap");
    let _node = sandbox.up("one", &[]);
    sandbox.done(&["add", "nap", "triggered", "sleep", "1000"]);
    sandbox.done(&["run", "nap"]);
    sandbox.wait_for("nap#1", "running");
    sandbox.at_store(&["run", "nap"]).exits(1).prints("nap#2 skipped: overlap");
}

#[test]
fn node_executes_commands_sent_through_the_store() {
    let sandbox = Sandbox::new("orders");
    sandbox.done(&["add", "long", "triggered", "sleep", "600"]);
    sandbox.done(&["add", "tick", "* * * * * * *", "true"]);
    let node = sandbox.up("one", &[]);
    for (order, state) in [("stop", "failure"), ("kill", "failure")] {
        let run = sandbox.json(&["run", "long"])["id"].as_str().expect("an id").to_owned();
        sandbox.wait_for(&run, "running");
        sandbox.at_store(&[order, &run]).exits(0);
        eventually(&format!("{order} ends {run}"), || sandbox.json(&["runs", &run])[0]["state"] == state);
    }
    eventually("tick runs", || sandbox.json(&["runs", "tick"])[0]["state"] == "success");
    sandbox.at_store(&["drain", "one"]).exits(0).prints("draining");
    sandbox.at_store(&["nodes"]).exits(0).prints("draining");
    sandbox.at_store(&["drain", "--undo", "one"]).exits(0);
    sandbox.at_store(&["drain"]).exits(1).prints("name a node");
    sandbox.at_store(&["pause", "all"]).exits(0);
    let paused = sandbox.json(&["runs", "tick"])[0]["id"].clone();
    // No scheduled run starts any more. A run on request that starts later proves it.
    let run = sandbox.json(&["run", "long"])["id"].as_str().expect("an id").to_owned();
    sandbox.wait_for(&run, "running");
    let latest = sandbox.json(&["runs", "tick"])[0].clone();
    assert!(latest["id"] == paused || latest["state"] == "skipped", "{latest}");
    sandbox.at_store(&["kill", &run]).exits(0);
    node.stop();
}

/// `watch` receives the change notifications of nodes.
#[test]
fn watch_without_a_daemon_shows_runs_and_pauses() {
    let sandbox = Sandbox::new("watch");
    sandbox.done(&["add", "hello", "triggered", "echo", "hi"]);
    let url = sandbox.server.url();
    let mut command = sandbox.command(&["--store", &url, "watch"]);
    let mut watch = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let lines = BufReader::new(watch.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let node = sandbox.up("one", &[]);
    let (send, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.for_each(|line| drop(send.send(line))));
    // `watch` may start to listen after the first run, so there are several.
    let mut seen = Vec::new();
    eventually("a run is shown", || {
        sandbox.at_store(&["run", "hello", "--wait"]).exits(0);
        seen.extend(heard.try_iter());
        seen.iter().any(|line| line.contains("hello#") && line.contains("success"))
    });
    sandbox.done(&["pause", "hello"]);
    eventually("the pause is shown", || {
        seen.extend(heard.try_iter());
        seen.iter().any(|line| line.contains("hello") && line.contains("paused"))
    });
    let _ = watch.kill();
    let _ = watch.wait();
    node.stop();
}

/// The environment names the store for daemons and commands. Options that name a daemon override it.
#[test]
fn store_from_environment_is_used() {
    let sandbox = Sandbox::new("environment");
    let node = sandbox.up("one", &[]);
    let url = sandbox.server.url();
    let run = |args: &[&str]| {
        let output = sandbox.command(args).env("CRONHOLD_STORE", &url).output().expect("the binary starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(run(&["add", "hello", "triggered", "true"]).0, Some(0));
    let (code, nodes) = run(&["nodes"]);
    assert!(code == Some(0) && nodes.contains("one") && !nodes.contains("this node"), "{nodes}");
    let (code, nodes) = run(&["nodes", "--data", "one"]);
    assert!(code == Some(0) && nodes.contains("this node"), "{nodes}");
    // Commands ignore a store that only a daemon can use.
    let output = sandbox.command(&["nodes"]).env("CRONHOLD_STORE", "sqlite:a.db").output().expect("the binary starts");
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no daemon is running in nobody"));
    node.stop();
}

/// A schedule without a zone keeps the zone that it had.
#[test]
fn changed_job_keeps_its_zone() {
    let sandbox = Sandbox::new("zone");
    let node = sandbox.up("one", &["--timezone", "Europe/Berlin"]);
    sandbox.run_command(&["add", "--data", "one", "nightly", "30 2 * * *", "true"]).exits(0);
    let before = sandbox.json(&["next", "nightly"]);
    sandbox.done(&["upd", "nightly", "--timeout", "1h"]);
    assert_eq!(sandbox.json(&["next", "nightly"]), before);
    sandbox.done(&["add", "other", "30 2 * * *", "true"]);
    assert_eq!(sandbox.json(&["next", "other"])[0]["time"], before[0]["time"], "{before}");
    node.stop();
}

#[test]
fn everything_that_jobs_can_do_works_on_two_nodes() {
    check_features(&Sandbox::new("features"));
}

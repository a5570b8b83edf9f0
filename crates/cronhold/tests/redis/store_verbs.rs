//! Verbs on a store without a daemon, and a daemon that starts later and uses what they stored.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::processes::eventually;
use crate::site::Site;

#[test]
fn jobs_are_managed_without_a_daemon() {
    let site = Site::new("jobs");
    assert_eq!(site.json(&["nodes"]), serde_json::json!([]));
    site.at_store(&["list"]).exits(0).prints("no jobs");
    site.at_store(&["add", "hello", "triggered", "echo", "hi"]).exits(0).prints("added `hello`");
    site.at_store(&["add", "hello", "triggered", "echo", "hi"]).exits(1).prints("hello");
    site.at_store(&["add", "nightly", "30 2 * * *", "true"]).exits(0).prints("next");
    site.at_store(&["list"]).exits(0).prints("hello").prints("nightly");
    site.at_store(&["show", "hello"]).exits(0).prints("echo");
    site.at_store(&["show", "helo"]).exits(1).prints("did you mean `hello`?");
    site.at_store(&["upd", "hello", "--timeout", "1h"]).exits(0);
    site.at_store(&["show", "hello"]).exits(0).prints("1h");
    site.at_store(&["next", "nightly", "-n", "1"]).exits(0).prints("02:30");
    site.at_store(&["pause", "nightly", "--why", "tea"]).exits(0).prints("paused");
    site.at_store(&["why", "nightly"]).exits(0).prints("by ada (tea)");
    assert_eq!(site.server.cli(&["SMEMBERS", "{cronken}:jobs:paused"]), "nightly");
    site.at_store(&["resume", "nightly"]).exits(0);
    assert_eq!(site.server.cli(&["SMEMBERS", "{cronken}:jobs:paused"]), "");
    site.at_store(&["holes"]).exits(0);
    site.at_store(&["backfill", "nightly", "--from", "3d", "--dry-run"]).exits(0);
    // When the command has exited, other programs that share the store see the jobs as definitions.
    let forms = site.server.cli(&["HKEYS", "{cronken}:jobs"]);
    assert!(forms == "hello\nnightly" || forms == "nightly\nhello", "{forms}");
    site.at_store(&["del", "nightly"]).exits(0);
    assert_eq!(site.server.cli(&["HKEYS", "{cronken}:jobs"]), "hello");
    site.at_store(&["list"]).exits(0).prints("hello").omits("nightly");
}

#[test]
fn runs_without_a_daemon_wait_for_a_node() {
    let site = Site::new("runs");
    site.done(&["add", "hello", "triggered", "echo", "hi"]);
    for _ in 0..3 {
        site.at_store(&["run", "hello"]).exits(0);
    }
    assert_eq!(site.json(&["runs", "hello"]).as_array().map(Vec::len), Some(3));
    site.at_store(&["skip", "hello#1"]).exits(0);
    site.at_store(&["stop", "hello#2"]).exits(1).prints("the run has not started yet");
    site.at_store(&["skip", "hello#2"]).exits(0);
    site.at_store(&["mark", "hello#1", "success", "--why", "by hand"]).exits(0);
    assert_eq!(site.json(&["runs", "hello#1"])[0]["state"], "success");
    site.at_store(&["why", "hello"]).exits(0).prints("hello#3");

    // A node that starts later finds the jobs and the waiting runs.
    let node = site.up("one", &[]);
    site.wait_for("hello#3", "success");
    site.at_store(&["logs", "hello#3"]).exits(0).prints("hi");
    site.at_store(&["nodes"]).exits(0).prints("one");
    let waited = site.at_store(&["run", "hello", "--wait"]).exits(0);
    assert_eq!(waited.out, "hi\n", "{waited:?}");
    site.at_store(&["rerun", "hello#4"]).exits(0);
    site.wait_for("hello#5", "success");
    // A daemon gives the same answer.
    let asked = site.run_command(&["list", "--data", "one"]).exits(0);
    assert_eq!(asked.out, site.done(&["list"]));
    node.stop();
}

#[test]
fn node_executes_commands_sent_through_the_store() {
    let site = Site::new("orders");
    site.done(&["add", "long", "triggered", "sleep", "600"]);
    site.done(&["add", "tick", "* * * * * * *", "true"]);
    let node = site.up("one", &[]);
    for (order, state) in [("stop", "failure"), ("kill", "failure")] {
        let run = site.json(&["run", "long"])["id"].as_str().expect("an id").to_owned();
        site.wait_for(&run, "running");
        site.at_store(&[order, &run]).exits(0);
        eventually(&format!("{order} ends {run}"), || site.json(&["runs", &run])[0]["state"] == state);
    }
    eventually("tick runs", || site.json(&["runs", "tick"])[0]["state"] == "success");
    site.at_store(&["drain", "one"]).exits(0).prints("draining");
    site.at_store(&["nodes"]).exits(0).prints("draining");
    site.at_store(&["drain", "--undo", "one"]).exits(0);
    site.at_store(&["drain"]).exits(1).prints("name a node");
    site.at_store(&["pause", "all"]).exits(0);
    let paused = site.json(&["runs", "tick"])[0]["id"].clone();
    // No scheduled run starts any more. A run on request that starts later proves it.
    let run = site.json(&["run", "long"])["id"].as_str().expect("an id").to_owned();
    site.wait_for(&run, "running");
    let latest = site.json(&["runs", "tick"])[0].clone();
    assert!(latest["id"] == paused || latest["state"] == "skipped", "{latest}");
    site.at_store(&["kill", &run]).exits(0);
    node.stop();
}

/// `watch` receives the change notifications of nodes.
#[test]
fn watch_without_a_daemon_shows_runs_and_pauses() {
    let site = Site::new("watch");
    site.done(&["add", "hello", "triggered", "echo", "hi"]);
    let url = site.server.url();
    let mut command = site.command(&["--store", &url, "watch"]);
    let mut watch = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let lines = BufReader::new(watch.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let node = site.up("one", &[]);
    let (send, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.for_each(|line| drop(send.send(line))));
    // `watch` may start to listen after the first run, so there are several.
    let mut seen = Vec::new();
    eventually("a run is shown", || {
        site.at_store(&["run", "hello", "--wait"]).exits(0);
        seen.extend(heard.try_iter());
        seen.iter().any(|line| line.contains("hello#") && line.contains("success"))
    });
    site.done(&["pause", "hello"]);
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
    let site = Site::new("environment");
    let node = site.up("one", &[]);
    let url = site.server.url();
    let run = |args: &[&str]| {
        let output = site.command(args).env("CRONHOLD_STORE", &url).output().expect("the binary starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(run(&["add", "hello", "triggered", "true"]).0, Some(0));
    let (code, nodes) = run(&["nodes"]);
    assert!(code == Some(0) && nodes.contains("one") && !nodes.contains("this node"), "{nodes}");
    let (code, nodes) = run(&["nodes", "--data", "one"]);
    assert!(code == Some(0) && nodes.contains("this node"), "{nodes}");
    // Commands ignore a store that only a daemon can use.
    let output = site.command(&["nodes"]).env("CRONHOLD_STORE", "sqlite:a.db").output().expect("the binary starts");
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no daemon is running in nobody"));
    node.stop();
}

/// A schedule without a zone keeps the zone that it had.
#[test]
fn changed_job_keeps_its_zone() {
    let site = Site::new("zone");
    let node = site.up("one", &["--timezone", "Europe/Berlin"]);
    site.run_command(&["add", "--data", "one", "nightly", "30 2 * * *", "true"]).exits(0);
    let before = site.json(&["next", "nightly"]);
    site.done(&["upd", "nightly", "--timeout", "1h"]);
    assert_eq!(site.json(&["next", "nightly"]), before);
    site.done(&["add", "other", "30 2 * * *", "true"]);
    assert_eq!(site.json(&["next", "other"])[0]["time"], before[0]["time"], "{before}");
    node.stop();
}

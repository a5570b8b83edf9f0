//! `cronhold bench --store redis://…`: it uses a namespace of its own and deletes it, and nothing else.

use std::process::Stdio;

use cronhold_store_redis::testing::ServerOptions;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::processes::eventually;
use crate::sandbox::{CommandOutput, Sandbox};

/// The prefix of the keys of a benchmark.
const PREFIX: &str = "{cronhold-bench-";

/// Keys that a failure shows.
const SHOWN_MAX: usize = 5;

fn keys(sandbox: &Sandbox) -> Vec<String> {
    let mut keys: Vec<String> = sandbox.server.cli(&["KEYS", "*"]).lines().map(str::to_owned).collect();
    keys.sort();
    keys
}

/// Asserts that the server has the same keys as before. A failure shows only some of those that differ.
#[track_caller]
fn assert_unchanged(sandbox: &Sandbox, before: &[String]) {
    let now = keys(sandbox);
    let added = now.iter().filter(|key| !before.contains(key));
    let removed = before.iter().filter(|key| !now.contains(key));
    let differing: Vec<&String> = added.chain(removed).take(SHOWN_MAX).collect();
    assert!(differing.is_empty(), "{differing:?}");
}

#[test]
fn bench_deletes_only_its_own_namespace() {
    let sandbox = Sandbox::new("bench");
    sandbox.done(&["add", "hello", "triggered", "true"]);
    let before = keys(&sandbox);
    let text = sandbox.at_store(&["bench", "--seconds", "5", "-o", "json"]).exits(0).out;
    let rows: Vec<Value> = serde_json::from_str(&text).expect("a JSON list");
    let value = |name: &str| rows.iter().find(|row| row["what"] == name).and_then(|row| row["value"].as_f64());
    assert!(value("round_trip_median").is_some_and(|millis| millis > 0.0), "{text}");
    assert!(value("process_runs_per_second").is_some_and(|rate| rate > 0.0), "{text}");
    assert_eq!(value("fsync_median"), None, "{text}");
    assert_unchanged(&sandbox, &before);
    // An empty namespace of the user is used as it is.
    let url = sandbox.server.url_with("namespace={mine}");
    let shown = sandbox.run_command(&["bench", "--seconds", "5", "--store", &url]).exits(0);
    shown.prints("namespace={mine}").prints("The store warns: Redis has no persistence");
    assert_unchanged(&sandbox, &before);
    assert!(!sandbox.path("nobody").exists(), "the data directory is not created");
}

#[test]
fn interrupted_bench_deletes_its_namespace() {
    let sandbox = Sandbox::new("bench-signal");
    let url = sandbox.server.url();
    let args = ["bench", "--store", &url];
    for part in ["requests:", "process-rate:"] {
        let mut command = sandbox.command(&[&args[..], &["--seconds", "5"]].concat());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        eventually(part, || keys(&sandbox).iter().any(|key| key.starts_with(PREFIX) && key.contains(part)));
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        CommandOutput::new(&args, &output).exits(1).prints("received SIGTERM");
        assert_unchanged(&sandbox, &[]);
    }
}

#[test]
fn bench_refuses_a_namespace_with_keys_and_an_evicting_server() {
    let options = ServerOptions { maxmemory: Some((64 << 20, "allkeys-lru")), ..ServerOptions::default() };
    let sandbox = Sandbox::with("bench-refused", options);
    sandbox.server.cli(&["SET", "{mine}:note", "1"]);
    let url = sandbox.server.url_with("namespace={mine}");
    sandbox.run_command(&["bench", "--store", &url]).exits(1).prints("is not empty").prints("hint:");
    sandbox.at_store(&["bench"]).exits(1).prints("--accept-loss");
    assert_eq!(keys(&sandbox), ["{mine}:note"]);
}

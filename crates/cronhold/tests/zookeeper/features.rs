//! What jobs can do on ZooKeeper, and its limits: how large a definition and a change are, how much of an output and how
//! many runs are kept.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::processes::eventually;
use crate::sandbox::{Sandbox, SandboxServer};
use crate::store_features::check_features;

/// The smallest limits that a URL can set.
const SMALL: &str = "&max_bytes=65536&output=1024&keep=3";
/// Bytes of a definition and of the records of a unit that exceed them.
const LARGE_TEXT: usize = 20_000;
const LARGE_ARG: usize = 8_000;
/// Finished runs that are left of three that are kept: they are deleted in batches.
const LEFT_MAX: usize = 3 + 8;
/// Runs that wait, whose args do not fit into one change. A change of fewer records is not measured beforehand.
const WAITING: usize = 20;

#[test]
fn everything_that_jobs_can_do_works_on_two_nodes() {
    check_features(&Sandbox::new("features"));
}

#[test]
fn limits_are_told_and_respected() {
    let sandbox = Sandbox::new("limits");
    let url = format!("{}{SMALL}", sandbox.server.store_url());
    let command = |args: &[&str]| sandbox.run_command(&[&["--store", &url], args].concat());
    let text = "x".repeat(LARGE_TEXT);
    sandbox.put("large.yaml", &format!("program: ['true']\ndescription: {text}\n"));
    command(&["add", "large", "-f", "large.yaml"]).exits(1).prints("this store keeps at most");
    command(&["show", "large"]).exits(1);

    // Without a node, runs wait.
    sandbox.put("slow.yaml", "program: {noop: true}\nparams: [x]\noverlap: allow\n");
    command(&["add", "slow", "-f", "slow.yaml"]).exits(0);
    for number in 0..WAITING {
        command(&["run", "slow", &format!("x={number}{}", "x".repeat(LARGE_ARG))]).exits(0);
    }
    let refused = command(&["rename", "slow", "fast"]).exits(1);
    refused.prints("this store writes at most").prints("hint:").prints("cronhold skip");
    command(&["show", "slow"]).exits(0);

    let node = sandbox.start_at(&url, "one", &[]);
    node.wait_until_ready();
    let logged = node.logged("store_limits");
    let limits = logged[0]["limits"].as_str().expect("a text");
    assert!(limits.contains("output of a run: 1024 bytes") && limits.contains("finished runs: 3 per"), "{limits}");
    assert_eq!(health(&node.logged("listening")[0])["store_limits"]["kept_runs"], 3);
    let kept = || command(&["runs", "slow", "-o", "json"]).exits(0).out;
    let kept = || serde_json::from_str::<Vec<Value>>(&kept()).expect("runs").len();
    eventually("few runs are kept", || (3..=LEFT_MAX).contains(&kept()));
    // The outcomes of all runs do not fit into one change either.
    command(&["rename", "slow", "fast"]).exits(0);
    command(&["rename", "fast", "faster"]).exits(0);
    command(&["add", "chatty", "triggered", "seq", "1", "100000"]).exits(0);
    let shown = command(&["run", "chatty", "--wait"]).exits(0).out;
    let stored = || command(&["logs", "chatty#1"]).exits(0).out;
    assert!(shown.starts_with("1\n"), "{shown}");
    eventually("the output ends", || stored().trim_end().ends_with("100000"));
    assert!(stored().len() < 2 * 1_024, "{}", stored().len());
    node.stop();
}

/// The health of a node, from where it listens.
fn health(listening: &Value) -> Value {
    let address =
        listening["url"].as_str().expect("a URL").trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut stream = TcpStream::connect(&address).expect("the node listens");
    let request = format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the node reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("the node replies");
    let body = &reply[reply.find('{').unwrap_or_else(|| panic!("{reply}"))..=reply.rfind('}').expect("JSON")];
    serde_json::from_str(body).expect("JSON")
}

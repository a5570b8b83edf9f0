//! Verbs on ZooKeeper without a daemon, and a daemon that starts later and uses what they stored.

use crate::processes::eventually;
use crate::sandbox::Sandbox;

#[test]
fn jobs_and_runs_are_managed_without_a_daemon() {
    let sandbox = Sandbox::new("verbs");
    assert_eq!(sandbox.json(&["nodes"]), serde_json::json!([]));
    sandbox.at_store(&["list"]).exits(0).prints("no jobs");
    sandbox.at_store(&["add", "hello", "triggered", "echo", "hi"]).exits(0).prints("added `hello`");
    sandbox.at_store(&["add", "hello", "triggered", "echo", "hi"]).exits(1);
    sandbox.done(&["add", "nightly", "30 2 * * *", "true"]);
    let list = sandbox.done(&["list"]);
    assert!(list.contains("hello") && list.contains("nightly"), "{list}");
    sandbox.done(&["upd", "hello", "--timeout", "1h"]);
    assert!(sandbox.done(&["show", "hello"]).contains("1h"));
    sandbox.done(&["pause", "nightly", "--why", "tea"]);
    assert!(sandbox.done(&["why", "nightly"]).contains("by ada (tea)"));
    sandbox.done(&["del", "nightly"]);
    assert!(!sandbox.done(&["list"]).contains("nightly"));
    sandbox.done(&["run", "hello"]);
    let refused = sandbox.at_store(&["task", "list"]);
    assert!(refused.code == Some(1) && refused.err.contains("SQLite store or Redis"), "{refused:?}");

    let _node = sandbox.up("one", &[]);
    eventually("the run succeeds", || sandbox.json(&["runs", "hello#1"])[0]["state"] == "success");
    assert!(sandbox.done(&["logs", "hello#1"]).contains("hi"));
    assert!(sandbox.done(&["run", "hello", "--wait"]).contains("hi"));
}

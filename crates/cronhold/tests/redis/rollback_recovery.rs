//! The log of a node whose store is emptied.

use serde_json::json;

use crate::peers::NEVER;
use crate::processes::eventually;
use crate::sandbox::Sandbox;

#[test]
fn store_recovery_is_logged_once() {
    let sandbox = Sandbox::new("healing");
    let node = sandbox.up("one", &[]);
    // A node restores the records that it wrote itself.
    sandbox.run_command(&["--data", "one", "add", "often", "@every 1s", "true"]).exits(0);
    node.wait_until_logged("run_state", &[("job", "often"), ("number", "1"), ("state", "success")]);
    sandbox.server.cli(&["FLUSHALL"]);
    node.wait_until_logged("store_rolled_back", &[]);
    // The node sends heartbeats in the meantime, and tries to commit.
    let beats = || sandbox.server.cli(&["HGET", "{cronken}:cronhold:meta", "beats"]).parse::<u64>().unwrap_or(0);
    eventually("it has sent some heartbeats", || beats() >= 4);
    sandbox.server.cli(&["DEL", "{cronken}:cronhold:healing"]);
    node.wait_until_logged("store_recovered", &[]);
    let count = |event: &str| node.logged(event).len();
    assert_eq!((count("store_rolled_back"), count("store_recovered")), (1, 1), "{}", node.log_text());
    node.wait_until_message("store_rolled_back", "45s500ms");
    assert_eq!((count("store_available"), count("store_unavailable")), (0, 0), "{}", node.log_text());
    node.stop();
}

/// When an event removes a job, a lock with a lifetime of years marks that. Recovery does not wait for it.
#[test]
fn marker_of_removed_job_does_not_delay_recovery() {
    let sandbox = Sandbox::new("healing-removed");
    let node = sandbox.up("one", &[]);
    sandbox.run_command(&["--data", "one", "add", "often", "@every 1s", "true"]).exits(0);
    sandbox.define("r1", NEVER);
    sandbox.event("reload", &json!({}));
    eventually("it is a job", || sandbox.has_job("r1"));
    sandbox.event("remove", &json!("r1"));
    eventually("it is removed", || !sandbox.has_job("r1"));
    sandbox.server.cli(&["FLUSHALL"]);
    node.wait_until_logged("store_rolled_back", &[]);
    node.wait_until_message("store_rolled_back", "45s500ms");
    sandbox.server.cli(&["DEL", "{cronken}:cronhold:healing"]);
    node.wait_until_logged("store_recovered", &[]);
    node.stop();
}

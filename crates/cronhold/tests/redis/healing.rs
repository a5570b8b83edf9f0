//! A store that is emptied while a node runs: what the log says of it.

use serde_json::json;

use crate::peers::NEVER;
use crate::processes::eventually;
use crate::site::Site;

#[test]
fn store_recovery_is_logged_once() {
    let site = Site::new("healing");
    let node = site.up("one", &[]);
    // What the node has written itself is brought back by it.
    site.give(&["--data", "one", "add", "often", "@every 1s", "true"]).exits(0);
    node.wait_until_logged("run_state", &[("job", "often"), ("number", "1"), ("state", "success")]);
    site.server.cli(&["FLUSHALL"]);
    node.wait_until_logged("store_rolled_back", &[]);
    // The node beats meanwhile, and tries to commit.
    let beats = || site.server.cli(&["HGET", "{cronken}:cronhold:meta", "beats"]).parse::<u64>().unwrap_or(0);
    eventually("it has been alive for some beats", || beats() >= 4);
    site.server.cli(&["DEL", "{cronken}:cronhold:healing"]);
    node.wait_until_logged("store_recovered", &[]);
    let count = |event: &str| node.logged(event).len();
    assert_eq!((count("store_rolled_back"), count("store_recovered")), (1, 1), "{}", node.said());
    node.wait_until_message("store_rolled_back", "45s500ms");
    assert_eq!((count("store_available"), count("store_unavailable")), (0, 0), "{}", node.said());
    node.stop();
}

/// A job that an event has removed is marked as such for years, by a lock. Nobody waits for that.
#[test]
fn marker_of_removed_job_does_not_delay_recovery() {
    let site = Site::new("healing-removed");
    let node = site.up("one", &[]);
    site.give(&["--data", "one", "add", "often", "@every 1s", "true"]).exits(0);
    site.define("r1", NEVER);
    site.event("reload", &json!({}));
    eventually("it is a job", || site.has_job("r1"));
    site.event("remove", &json!("r1"));
    eventually("it is removed", || !site.has_job("r1"));
    site.server.cli(&["FLUSHALL"]);
    node.wait_until_logged("store_rolled_back", &[]);
    node.wait_until_message("store_rolled_back", "45s500ms");
    site.server.cli(&["DEL", "{cronken}:cronhold:healing"]);
    node.wait_until_logged("store_recovered", &[]);
    node.stop();
}

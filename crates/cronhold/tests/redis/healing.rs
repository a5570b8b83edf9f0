//! A store that is emptied while a node runs: what the log says of it.

use serde_json::json;

use crate::peers::NEVER;
use crate::processes::eventually;
use crate::site::Site;

#[test]
fn a_store_that_is_healed_is_told_of_once() {
    let site = Site::new("healing");
    let node = site.up("one", &[]);
    // What the node has written itself is brought back by it.
    site.give(&["--data", "one", "add", "often", "@every 1s", "true"]).exits(0);
    node.wait_until_it_says("often#1 success");
    site.server.cli(&["FLUSHALL"]);
    node.wait_until_it_says("the store is recovering from a rollback");
    // The node beats meanwhile, and tries to commit.
    let beats = || site.server.cli(&["HGET", "{cronken}:cronhold:meta", "beats"]).parse::<u64>().unwrap_or(0);
    eventually("it has been alive for some beats", || beats() >= 4);
    site.server.cli(&["DEL", "{cronken}:cronhold:healing"]);
    node.wait_until_it_says("the store is healed");
    let said = node.said();
    let count = |words: &str| said.matches(words).count();
    assert_eq!((count("recovering from a rollback"), count("is healed")), (1, 1), "{said}");
    assert!(said.contains("at most 45s500ms"), "{said}");
    assert_eq!((count("works again"), count("is unavailable")), (0, 0), "{said}");
    node.stop();
}

/// A job that an event has removed is marked as such for years, by a lock. Nobody waits for that.
#[test]
fn a_job_that_was_removed_by_an_event_keeps_nobody_waiting() {
    let site = Site::new("healing-removed");
    let node = site.up("one", &[]);
    site.give(&["--data", "one", "add", "often", "@every 1s", "true"]).exits(0);
    site.define("r1", NEVER);
    site.event("reload", &json!({}));
    eventually("it is a job", || site.has_job("r1"));
    site.event("remove", &json!("r1"));
    eventually("it is removed", || !site.has_job("r1"));
    site.server.cli(&["FLUSHALL"]);
    node.wait_until_it_says("the store is recovering from a rollback");
    assert!(node.said().contains("at most 45s500ms"), "{}", node.said());
    site.server.cli(&["DEL", "{cronken}:cronhold:healing"]);
    node.wait_until_it_says("the store is healed");
    node.stop();
}

//! Whether nodes of Cronken run the same jobs is stored in the namespace, regardless of the URLs of other nodes.

use std::time::Duration;

use cronhold_schedule::Span;
use cronhold_store::Store;
use cronhold_store::conformance::block_on;
use cronhold_store_redis::RedisStore;
use cronhold_store_redis::testing::until;
use serde_json::json;

use crate::fixture::{Fixture, lock_name, open};

/// The key of the lock `backup`.
const BACKUP: &str = "locks:89121dc99c7db9ce2553a093a2ab29e07f7df34f";

fn knows_peers(store: &RedisStore) -> bool {
    store.shared().expect("Redis is shared").has_foreign_nodes()
}

fn warnings(store: &RedisStore) -> String {
    block_on(store.health()).warnings.join("\n")
}

/// The stored `peers` word.
fn stored_word(fixture: &Fixture) -> serde_json::Value {
    fixture.at("HGET", "cronhold:meta", &["peers"])
}

/// Releases a lock of a run that is due now. Returns whether the key stays for a while for foreign nodes.
fn stays(fixture: &Fixture) -> bool {
    let (lock, now) = (lock_name("backup"), fixture.run("backup").id);
    fixture.take(&lock, now, Some(Span::from_secs(10))).expect("it is free");
    fixture.free(&lock, now);
    let stays = fixture.kind(BACKUP) == "string";
    fixture.at("DEL", BACKUP, &[]);
    stays
}

#[test]
fn later_node_takes_over_peers_from_the_namespace() {
    let fixture = Fixture::with("peers=cronken");
    assert_eq!((stored_word(&fixture), knows_peers(&fixture.store)), (json!("cronken"), true));
    let looks = open(&fixture.server, "output=zset");
    assert!(!knows_peers(&looks), "no request was sent yet");
    block_on(looks.time()).expect("it answers");
    assert!(knows_peers(&looks), "a reader knows it too");
    block_on(looks.enroll()).expect("it enrolls");
    assert!(
        knows_peers(&looks) && warnings(&looks).contains("although the URL does not have it"),
        "{}",
        warnings(&looks)
    );
    assert_eq!(stored_word(&fixture), json!("cronken"));
    assert!(!warnings(&fixture.store).contains("Cronken"), "{}", warnings(&fixture.store));
}

#[test]
fn running_node_learns_peers_by_its_next_heartbeat() {
    let fixture = Fixture::new();
    assert!(!stays(&fixture) && !knows_peers(&fixture.store));
    block_on(open(&fixture.server, "peers=cronken").enroll()).expect("it enrolls");
    assert!(stays(&fixture), "locks are kept before the next heartbeat");
    let run = fixture.running("backup");
    fixture.beat(&[]);
    assert!(knows_peers(&fixture.store));
    assert!(warnings(&fixture.store).contains("although the URL does not have it"), "{}", warnings(&fixture.store));
    fixture.append(run.id, 0, b"a line\n").expect("it is appended");
    assert_eq!(fixture.kind(&format!("rundata:output:{}", run.id)), "list", "as Cronken's nodes have it");
}

#[test]
fn url_with_none_clears_peers() {
    let fixture = Fixture::with("peers=cronken");
    let last = open(&fixture.server, "peers=none");
    block_on(last.time()).expect("it answers");
    block_on(last.enroll()).expect("it enrolls");
    assert_eq!(
        (stored_word(&fixture), knows_peers(&last), warnings(&last).contains("Cronken")),
        (json!(null), false, false)
    );
    assert!(!stays(&fixture));
    fixture.beat(&[]);
    assert!(!knows_peers(&fixture.store), "a running node notices the change");
    let next = open(&fixture.server, "");
    block_on(next.enroll()).expect("it enrolls");
    assert!(!knows_peers(&next));
}

#[test]
fn emptied_store_gets_its_peers_back() {
    let fixture = Fixture::new();
    block_on(open(&fixture.server, "peers=cronken").enroll()).expect("it enrolls");
    fixture.beat(&[]);
    fixture.store.set_min_recovery_time(Duration::from_millis(1));
    fixture.server.cli(&["FLUSHALL"]);
    let now = block_on(fixture.store.time()).expect("it answers");
    let node = cronhold_core::record::NodeRecord::new(crate::fixture::NODE, crate::fixture::HOST, 1, now);
    until("the node beats again", || block_on(fixture.store.beat(&node, &[])).ok());
    assert_eq!((stored_word(&fixture), knows_peers(&fixture.store)), (json!("cronken"), true));
}

//! A Cluster whose masters fail. All keys are in one slot, so that one of them has everything.

use cronhold_core::record::Key;
use cronhold_store_redis::testing::ClusterSet;

use crate::hand::{Hand, counter, job_id};

#[test]
fn the_master_of_the_slot_is_replaced() {
    let mut set = ClusterSet::start(true);
    let mut hand = Hand::new(&set.url_with("timeout=500ms"));
    hand.put(counter("a", 1)).unwrap();
    let before = set.master_of("{cronken}");
    assert!(set.servers[before].cli(&["KEYS", "{cronken}:*"]).contains("cronhold:job_states"));
    set.servers[before].kill();
    hand.put_in_time(&counter("b", 1));
    assert_ne!(set.master_of("{cronken}"), before);
    assert_eq!(hand.get(&Key::JobState(job_id("a"))), Some(counter("a", 1)));
}

#[test]
fn another_namespace_is_in_another_slot() {
    let set = ClusterSet::start(false);
    let hands = ["{x}", "a{y}b", "{z}:more"].map(|namespace| {
        let mut hand = Hand::new(&set.url_with(&format!("namespace={namespace}")));
        hand.put(counter("a", 1)).unwrap();
        hand
    });
    for hand in &hands {
        assert_eq!(hand.get(&Key::JobState(job_id("a"))), Some(counter("a", 1)));
    }
}

//! A Cluster whose masters fail. All keys are in one slot, so one master has everything.

use cronhold_core::decision::{LockTake, RecordChange};
use cronhold_core::record::RecordKey;
use cronhold_store::{Fault, UnitRefusal};
use cronhold_store_redis::testing::ClusterSet;

use crate::store_client::{StoreClient, counter, job_id, lock, running};

#[test]
fn cluster_failover_keeps_working() {
    let mut set = ClusterSet::start(true);
    let mut client = StoreClient::new(&set.url_with("timeout=500ms"));
    client.put(counter("a", 1)).unwrap();
    let before = set.master_of("{cronken}");
    assert!(set.servers[before].cli(&["KEYS", "{cronken}:*"]).contains("cronhold:job_states"));
    set.servers[before].kill();
    client.put_in_time(&counter("b", 1));
    assert_ne!(set.master_of("{cronken}"), before);
    assert_eq!(client.get(&RecordKey::JobState(job_id("a"))), Some(counter("a", 1)));
}

#[test]
fn namespaces_may_be_in_different_slots() {
    let set = ClusterSet::start(false);
    let clients = ["{x}", "a{y}b", "{z}:more"].map(|namespace| {
        let mut client = StoreClient::new(&set.url_with(&format!("namespace={namespace}")));
        client.put(counter("a", 1)).unwrap();
        client
    });
    for client in &clients {
        assert_eq!(client.get(&RecordKey::JobState(job_id("a"))), Some(counter("a", 1)));
    }
}

/// While a slot moves, its keys are on two servers: no unit is written partially, and no record counts as missing.
#[test]
fn moved_slot_is_followed() {
    let set = ClusterSet::start(false);
    let mut client = StoreClient::new(&set.url_with("timeout=500ms"));
    client.put(counter("a", 1)).unwrap();
    let (run, record) = running("a", 1);
    let take = |name: &str| vec![LockTake { lock: lock(name), holder: run, ttl: None }];
    client.write(RecordChange::Put(record.clone()), take("one")).unwrap();

    let to = (set.master_of("{cronken}") + 1) % set.servers.len();
    let mut faults = Vec::new();
    set.move_slot("{cronken}", to, || {
        for (job, names) in [("b", ["two", "three"]), ("c", ["four", "five"])] {
            for name in names {
                match client.write(RecordChange::Put(counter(job, 7)), take(name)) {
                    Err(UnitRefusal::Fault(fault)) => faults.push(fault),
                    other => panic!("{other:?}: it was written while the slot moves"),
                }
            }
        }
    });
    assert!(!faults.is_empty());
    for fault in &faults {
        assert!(matches!(fault, Fault::Unavailable(_)), "{fault}");
    }
    client.put_in_time(&counter("d", 1));
    assert_eq!(set.master_of("{cronken}"), to);
    let found = |name: &str| client.get(&RecordKey::JobState(job_id(name)));
    assert_eq!(found("a"), Some(counter("a", 1)));
    assert_eq!((found("b"), found("c"), found("d")), (None, None, Some(counter("d", 1))));
    assert_eq!(client.get(&RecordKey::Run(run)), Some(record));
    for (name, is_held) in [("one", true), ("two", false), ("three", false), ("four", false), ("five", false)] {
        assert_eq!(client.get(&RecordKey::Lock(lock(name))).is_some(), is_held, "{name}");
    }
}

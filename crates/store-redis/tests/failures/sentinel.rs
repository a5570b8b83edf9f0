//! A Sentinel set whose master fails, with and without a loss.

use cronhold_core::record::RecordKey;
use cronhold_store::Fault;
use cronhold_store_redis::testing::{SentinelSet, until};

use crate::store_client::{StoreClient, counter, job_id};

/// The key that exists while commits are rejected.
const HEALING: &str = "{cronken}:cronhold:healing";

/// The key with the id of the server process that the latest commits were made on.
const META: &str = "{cronken}:cronhold:meta";

#[test]
fn failover_without_loss_keeps_working() {
    let mut set = SentinelSet::start();
    let mut client = StoreClient::new(&set.url_with("timeout=500ms"));
    client.put(counter("a", 1)).unwrap();
    assert_eq!(client.health().trouble, None, "the replica has it");
    let before = set.master();
    set.servers[before].kill();
    let after = set.wait_for_other_than(before);
    client.put_in_time(&counter("b", 1));
    let run_id = set.servers[after].cli(&["HGET", META, "server"]);
    assert!(set.servers[after].cli(&["INFO", "server"]).contains(&run_id), "commits were held for it: {run_id}");
    assert_eq!(client.get(&RecordKey::JobState(job_id("a"))), Some(counter("a", 1)));
    assert!(!client.health().warnings.iter().any(|warning| warning.contains("rolled back")), "{:?}", client.health());
}

#[test]
fn failover_with_loss_is_restored() {
    let mut set = SentinelSet::start();
    let mut client = StoreClient::new(&set.url_with("timeout=2s"));
    client.put(counter("kept", 1)).unwrap();
    let before = set.master();
    // The replica is disconnected and cannot reconnect.
    set.servers[before].cli(&["CONFIG", "SET", "requirepass", "closed"]);
    set.servers[before].cli(&["-a", "closed", "--no-auth-warning", "CLIENT", "KILL", "TYPE", "replica"]);
    client.put(counter("lost", 1)).unwrap();
    let warnings = client.health().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("no replica")), "no replica has it: {warnings:?}");
    set.servers[before].kill();
    let after = set.wait_for_other_than(before);
    let fault = until("it is noticed", || Some(client.fault()).filter(|fault| matches!(fault, Fault::Recovering(_))));
    assert!(fault.is_transient(), "{fault}");
    assert_eq!(client.get(&RecordKey::JobState(job_id("lost"))), Some(counter("lost", 1)));
    assert_eq!(client.get(&RecordKey::JobState(job_id("kept"))), Some(counter("kept", 1)));
    set.servers[after].cli(&["DEL", HEALING]);
    client.put_in_time(&counter("later", 1));
}

//! Deletion of a whole namespace on real servers: everything in it, and nothing else.

use std::sync::Arc;

use cronhold_core::JobId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{JobState, Record, RecordKey, RecordVersion};
use cronhold_schedule::ZoneRegistry;
use cronhold_store::conformance::block_on;
use cronhold_store::{Store, Unit};
use cronhold_store_redis::testing::{ClusterSet, RedisServer};
use cronhold_store_redis::{NamespaceKeys, Options, RedisStore, RedisUrl};

/// More keys than one `SCAN` and one `UNLINK` take.
const MANY: usize = 2_500;

fn url(text: &str) -> RedisUrl {
    RedisUrl::parse(text).expect("a URL")
}

/// Writes a record as a store does.
fn write_record(url: &RedisUrl) {
    let options = Options { zones: Arc::new(ZoneRegistry::bundled()), memory: None, accept_loss: false };
    let store = RedisStore::open(url, options).expect("it can be opened");
    let job = JobId::parse("a").expect("an id");
    let version = RecordVersion::new(block_on(store.enroll()).expect("a writer").0, 1);
    let compare = vec![(RecordKey::JobState(job.clone()), None)];
    let changes = vec![RecordChange::Put(Record::JobState(Arc::new(JobState::new(job))))];
    let unit = Unit { version, compare, changes, take: Vec::new(), free: Vec::new() };
    assert!(block_on(store.commit(vec![unit])).iter().all(Result::is_ok));
}

#[test]
fn only_keys_of_the_namespace_are_deleted() {
    let server = RedisServer::start();
    let mine = url(&server.url_with("namespace={bench-1}"));
    let keys = NamespaceKeys::open(&mine).expect("a runtime");
    assert_eq!(keys.is_empty(), Ok(true));
    let others = ["{bench-1}", "{bench-1}x:a", "{bench-12}:a", "x{bench-1}:a", "{bench}-1:a", "bench-1:a"];
    others.iter().for_each(|key| drop(server.cli(&["SET", key, "1"])));
    write_record(&url(&server.url()));
    let before = sorted_keys(&server);
    assert_eq!(keys.is_empty(), Ok(true), "keys of others do not count");
    write_record(&mine);
    write_record(&mine.with_namespace("{bench-1}:part").expect("a namespace"));
    let fill = format!("for n = 1, {MANY} do redis.call('SET', KEYS[1] .. n, 'x') end");
    server.cli(&["EVAL", &fill, "1", "{bench-1}:n"]);
    assert_eq!(keys.is_empty(), Ok(false));
    assert!(keys.delete_all().expect("deleted") > MANY as u64);
    assert_eq!((keys.is_empty(), keys.delete_all()), (Ok(true), Ok(0)));
    assert_eq!(sorted_keys(&server), before);
}

/// Signs that patterns of Redis interpret are plain text in the name of a namespace.
#[test]
fn pattern_signs_in_a_namespace_match_only_themselves() {
    let server = RedisServer::start();
    let namespace = "a*b?[c-d]\\^e";
    let others = ["aXbY[c-d]\\^e:k", "a*b?c\\^e:k", "a*b?[c-d]^e:k", "a*b?[c-d]\\^e"];
    others.iter().for_each(|key| drop(server.cli(&["SET", key, "1"])));
    let mine = url(&server.url()).with_namespace(namespace).expect("a namespace");
    let keys = NamespaceKeys::open(&mine).expect("a runtime");
    assert_eq!(keys.is_empty(), Ok(true));
    server.cli(&["SET", &format!("{namespace}:k"), "1"]);
    assert_eq!((keys.is_empty(), keys.delete_all()), (Ok(false), Ok(1)));
    assert_eq!(sorted_keys(&server).len(), others.len());
}

#[test]
fn namespace_of_a_cluster_is_deleted() {
    let set = ClusterSet::start(false);
    let namespaces = ["{x}", "{y}", "{z}"].map(|name| url(&set.url_with(&format!("namespace={name}"))));
    namespaces.iter().for_each(write_record);
    let keys = namespaces.map(|url| NamespaceKeys::open(&url).expect("a runtime"));
    assert!(keys[1].delete_all().expect("deleted") > 0);
    assert_eq!([0, 1, 2].map(|index: usize| keys[index].is_empty()), [Ok(false), Ok(true), Ok(false)]);
}

fn sorted_keys(server: &RedisServer) -> Vec<String> {
    let mut keys: Vec<String> = server.cli(&["KEYS", "*"]).lines().map(str::to_owned).collect();
    keys.sort();
    keys
}

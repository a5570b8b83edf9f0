//! A process publishes notifications only while another process is subscribed.

use std::sync::{Arc, mpsc};
use std::thread;

use cronhold_core::JobId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{JobState, Record, RecordKey, RecordVersion};
use cronhold_schedule::ZoneRegistry;
use cronhold_store::conformance::block_on;
use cronhold_store::{Hint, Store, Unit};
use cronhold_store_redis::testing::{RedisServer, until};
use cronhold_store_redis::{Options, RedisStore, RedisUrl};

const CHANNEL: &str = "{cronken}:cronhold:hints";

fn open(server: &RedisServer) -> Arc<RedisStore> {
    let url = RedisUrl::parse(&server.url()).expect("a URL");
    let options = Options { zones: Arc::new(ZoneRegistry::bundled()), memory: None, accept_loss: false };
    Arc::new(RedisStore::open(&url, options).expect("it can be opened"))
}

/// Subscribes, waits until `subscribers` processes are subscribed, and returns the hints that arrive.
fn subscribe(store: &Arc<RedisStore>, server: &RedisServer, subscribers: usize) -> mpsc::Receiver<Vec<Hint>> {
    let (sender, receiver) = mpsc::channel();
    let store = Arc::clone(store);
    thread::spawn(move || while sender.send(block_on(store.hints())).is_ok() {});
    let expected = subscribers.to_string();
    until("it is subscribed", || {
        let found = server.cli(&["PUBSUB", "NUMSUB", CHANNEL]);
        (found.lines().last() == Some(expected.as_str())).then_some(())
    });
    receiver
}

/// Creates the state of a job.
fn put(store: &RedisStore, writer: u32, unit: u64, job: &str) -> RecordKey {
    let job = JobId::parse(job).expect("an id");
    let key = RecordKey::JobState(job.clone());
    let changes = vec![RecordChange::Put(Record::JobState(Arc::new(JobState::new(job))))];
    let version = RecordVersion::new(writer, unit);
    let unit = Unit { version, compare: vec![(key.clone(), None)], changes, take: Vec::new(), free: Vec::new() };
    assert!(block_on(store.commit(vec![unit])).iter().all(Result::is_ok));
    key
}

/// How many messages were published.
fn published(server: &RedisServer) -> u64 {
    let statistics = server.cli(&["INFO", "commandstats"]);
    let calls = statistics.lines().find_map(|line| line.strip_prefix("cmdstat_publish:calls=")?.split(',').next());
    calls.map_or(0, |calls| calls.parse().expect("a number"))
}

#[test]
fn only_other_processes_are_notified() {
    let server = RedisServer::start();
    let store = open(&server);
    let writer = block_on(store.enroll()).expect("a writer").0;
    put(&store, writer, 1, "a");
    let own = subscribe(&store, &server, 1);
    put(&store, writer, 2, "b");
    put(&store, writer, 3, "c");
    assert_eq!(published(&server), 0, "no other process is subscribed");

    let other = open(&server);
    let received = subscribe(&other, &server, 2);
    let key = put(&store, writer, 4, "d");
    let hints = received.recv().expect("a notification");
    assert_eq!(hints.into_iter().map(|hint| hint.key).collect::<Vec<_>>(), [key]);
    assert_eq!(published(&server), 1);

    // Another handle of the same process needs the notification as well.
    server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    drop((received, other));
    let handle = RedisStore::clone(&store);
    let own_hints = {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || while sender.send(block_on(handle.hints())).is_ok() {});
        receiver
    };
    let mut unit = 4;
    until("the other handle gets it", || {
        unit += 1;
        put(&store, writer, unit, &format!("e-{unit}"));
        own_hints.try_recv().ok()
    });
    assert!(own.try_recv().is_err(), "the handle that commits does not get its own notifications");
}

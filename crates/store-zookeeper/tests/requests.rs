//! How many requests the store sends, and how large they are: a server ends the connection of a client whose request is
//! too large, and each transaction is a write to the disks of a majority.

use std::io::Read;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cronhold_core::decision::{LockTake, RecordChange};
use cronhold_core::record::{
    Actor, LockName, NodeRecord, Record, RecordKey, RecordVersion, Run, ScheduleId, Transition,
};
use cronhold_core::{JobId, JobUid, NodeId, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::conformance::block_on;
use cronhold_store::{Fault, Store, Unit};
use cronhold_store_zookeeper::testing::{ZnodeEditor, ZooKeeperServer};
use cronhold_store_zookeeper::{ZooKeeperOptions, ZooKeeperStore, ZooKeeperUrl};

fn open(url: &str) -> ZooKeeperStore {
    let url = ZooKeeperUrl::parse(url, None).expect("a URL");
    let options = ZooKeeperOptions { zones: Arc::new(ZoneRegistry::bundled()), memory: None };
    ZooKeeperStore::open(&url, options).expect("a thread")
}

fn run(number: usize) -> RunId {
    let number = i64::try_from(number).expect("a small number");
    RunId::from_key(Instant::from_secs(1_800_000_000 + number), "r")
}

#[test]
fn requests_with_long_names_are_split() {
    const COUNT: usize = 1_500;
    let server = ZooKeeperServer::start();
    let store = open(&format!("{}?timeout=30s", server.url("/long")));
    let writer = block_on(store.enroll()).expect("the server replies").0;
    // Each name has 190 letters of two bytes, which have six bytes in a path each.
    let name = |number: usize| format!("{}{number:05}", "\u{44f}".repeat(190));
    let lock = |number: usize| LockName::parse(&name(number)).expect("a name");
    let unit = |number: usize| Unit {
        version: RecordVersion::new(writer, number as u64 + 1),
        compare: Vec::new(),
        changes: Vec::new(),
        take: vec![LockTake { lock: lock(number), holder: run(1), ttl: Some(Span::from_secs(600)) }],
        free: Vec::new(),
    };
    let results = block_on(store.commit((0..COUNT).map(unit).collect()));
    assert!(results.iter().all(Result::is_ok), "{:?}", results.iter().find(|result| result.is_err()));
    let node = NodeRecord::new(NodeId::from_bits(7), "n", 1, Instant::from_secs(1_800_000_000));
    let locks: Vec<(LockName, RunId)> = (0..COUNT).map(|number| (lock(number), run(1))).collect();
    assert_eq!(block_on(store.beat(&node, &locks)), Ok(Vec::new()));
    let job = JobId::parse(&"\u{44f}".repeat(90)).expect("an id");
    let cursor = |number: usize| {
        RecordKey::Cursor(job.clone(), ScheduleId::parse(&format!("schedule {number}")).expect("an id"))
    };
    let mut keys: Vec<RecordKey> = (0..2 * COUNT).map(cursor).collect();
    keys.extend((0..COUNT).map(|number| RecordKey::Lock(lock(number))));
    let found = block_on(store.load(&keys)).expect("the server replies");
    assert_eq!(found.iter().flatten().count(), COUNT);
}

#[test]
fn callers_who_wait_for_an_unreachable_server_share_one_attempt() {
    const CALLERS: usize = 40;
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    thread::spawn(move || {
        // A server that accepts connections and never replies.
        for mut stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::Relaxed);
            thread::spawn(move || while let Ok(1..) = stream.read(&mut [0; 64]) {});
        }
    });
    let store = open(&format!("zk://127.0.0.1:{port}/silent?timeout=1s"));
    let call = || {
        thread::spawn({
            let store = store.clone();
            move || block_on(store.time())
        })
    };
    let callers: Vec<_> = (0..CALLERS).map(|_| call()).collect();
    for caller in callers {
        assert!(matches!(caller.join(), Ok(Err(Fault::Unavailable(_)))));
    }
    assert!(attempts.load(Ordering::Relaxed) < CALLERS / 2, "{attempts:?}");
}

#[test]
fn outputs_are_deleted_in_the_transactions_that_delete_their_runs() {
    const COUNT: usize = 100;
    let server = ZooKeeperServer::start();
    let url = server.url("/outputs");
    let store = open(&url);
    let writer = block_on(store.enroll()).expect("the server replies").0;
    let editor = ZnodeEditor::connect(&ZooKeeperUrl::parse(&url, None).expect("a URL"));
    let units = |change: &dyn Fn(usize) -> RecordChange, is_deletion: bool| -> Vec<Unit> {
        let base = if is_deletion { COUNT } else { 0 };
        let unit = |number: usize| {
            let version = |number: usize| RecordVersion::new(writer, number as u64 + 1);
            let compare = vec![(RecordKey::Run(run(number)), is_deletion.then(|| version(number)))];
            let (changes, version) = (vec![change(number)], version(base + number));
            Unit { version, compare, changes, take: Vec::new(), free: Vec::new() }
        };
        (0..COUNT).map(unit).collect()
    };
    let record = |number: usize| {
        let (id, job) = (run(number), JobId::parse("a").expect("an id"));
        let log = vec![Transition::entered(id.time(), State::Waiting, Actor::Schedule)];
        let blank = Run::blank(id, RunNumber(1), job, JobUid::from_bits(7), id.time());
        RecordChange::Put(Record::Run(Arc::new(Run { log, ..blank })))
    };
    assert!(block_on(store.commit(units(&record, false))).iter().all(Result::is_ok));
    for number in 0..COUNT {
        assert_eq!(block_on(store.append(run(number), 0, b"output")), Ok(6));
    }
    let before = editor.transaction();
    let deletion = |number: usize| RecordChange::Delete(RecordKey::Run(run(number)));
    assert!(block_on(store.commit(units(&deletion, true))).iter().all(Result::is_ok));
    let transactions = editor.transaction() - before;
    assert!(transactions < 10, "{transactions} transactions");
    assert_eq!(block_on(store.outputs(None, 1_000)), Ok(Vec::new()));
}

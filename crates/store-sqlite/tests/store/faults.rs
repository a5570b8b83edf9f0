//! Faults of a full disk and of locks by other processes, and that the store recovers without a restart.

use cronhold_core::record::{Record, RecordKey};
use cronhold_store::conformance::block_on;
use cronhold_store::{Fault, Store, UnitRefusal};
use cronhold_store_sqlite::{Options, SqliteStore};
use rusqlite::Connection;

use crate::places::Place;
use crate::samples::{delete, options, run, run_id, unit};

/// Units of a commit that exceeds the size limit.
const TOO_MANY: u64 = 2_000;

#[test]
fn full_disk_rejects_writes_and_loses_nothing() {
    let place = Place::new();
    let store = SqliteStore::open(place.database(), Options { size_max: Some(1 << 20), ..options() }).expect("a store");
    let first = (0..200).map(|number| unit(number, run(number))).collect();
    assert!(block_on(store.commit(first)).iter().all(Result::is_ok));

    let results = block_on(store.commit((200..TOO_MANY).map(|number| unit(number, run(number))).collect()));
    assert_eq!(results.len() as u64, TOO_MANY - 200);
    for result in &results {
        let Err(UnitRefusal::Fault(Fault::ReadOnly(message))) = result else { panic!("{result:?}") };
        assert!(message.contains("cronhold.db: the disk is full"), "{message}");
    }
    let trouble = block_on(store.health()).trouble.expect("the health report has a trouble");
    assert!(trouble.contains("the disk is full"), "{trouble}");
    let append = block_on(store.append(run_id(1), 0, &[7; 2 << 20]));
    assert!(matches!(append, Err(Fault::ReadOnly(_))), "{append:?}");
    assert_eq!(there(&store, 0..TOO_MANY), 200, "what was done is there, and nothing else");

    // Free some space.
    let gone = (0..100).map(|number| delete(TOO_MANY + number, number, RecordKey::Run(run_id(number)))).collect();
    assert!(block_on(store.commit(gone)).iter().all(Result::is_ok));
    let again = (200..250).map(|number| unit(number, run(number))).collect();
    assert!(block_on(store.commit(again)).iter().all(Result::is_ok), "the store recovers without a restart");
    assert_eq!(block_on(store.health()).trouble, None);
    assert_eq!(there(&store, 0..TOO_MANY), 150);
}

#[test]
fn locked_database_is_a_transient_fault() {
    let place = Place::new();
    let store = SqliteStore::open(place.database(), options()).expect("a store");
    let someone = Connection::open(place.database()).expect("a shell");
    someone.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    let results = block_on(store.commit(vec![unit(1, run(1))]));
    let Err(UnitRefusal::Fault(Fault::Unavailable(message))) = &results[0] else { panic!("{results:?}") };
    assert!(message.contains("another process has locked the database"), "{message}");
    assert_eq!(there(&store, 0..2), 0, "reads work meanwhile");
    drop(someone);
    assert!(block_on(store.commit(vec![unit(1, run(1))]))[0].is_ok());
}

/// A daemon that cannot write at its start tries again, and every attempt may enroll a writer.
#[test]
fn repeated_enrollment_does_not_make_the_store_shared() {
    let place = Place::new();
    let store = SqliteStore::open(place.database(), options()).expect("a store");
    let someone = Connection::open(place.database()).expect("a shell");
    someone.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    let refused = block_on(store.enroll());
    assert!(matches!(refused, Err(Fault::Unavailable(_))), "{refused:?}");
    drop(someone);
    for _ in 0..2 {
        block_on(store.enroll()).expect("a writer");
        assert!(!store.is_shared());
    }
}

#[test]
fn unreadable_rows_are_named() {
    let place = Place::new();
    let store = SqliteStore::open(place.database(), options()).expect("a store");
    assert!(block_on(store.commit(vec![unit(1, run(1))]))[0].is_ok());
    let someone = Connection::open(place.database()).expect("a shell");
    for (change, expected) in [
        ("state = 'tired'", "column state: `tired` is not a state of a run"),
        ("state = 'running', log = '{'", "column log: invalid type: map, expected a sequence"),
        ("log = '[]', attempt = -1", "column attempt: -1 is out of range"),
    ] {
        someone.execute_batch(&format!("UPDATE runs SET {change}")).expect("a change");
        let Err(Fault::Unreadable(record)) = block_on(store.load(&[RecordKey::Run(run_id(1))])) else {
            panic!("{change}")
        };
        assert_eq!(record.key, Some(RecordKey::Run(run_id(1))));
        let message = record.reason;
        assert!(message.contains(expected) && message.contains(&format!("table runs, row {}", run_id(1))), "{message}");
    }
}

/// Number of these runs that are stored.
fn there(store: &SqliteStore, numbers: std::ops::Range<u64>) -> usize {
    let keys: Vec<RecordKey> = numbers.map(|number| RecordKey::Run(run_id(number))).collect();
    let found = block_on(store.load(&keys)).expect("it can be read");
    found.iter().flatten().filter(|stored| matches!(stored.record, Record::Run(_))).count()
}

//! Cases about concurrent writers: each has a unique number, and no change is lost.

use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};
use std::thread;

use cronhold_core::record::{Record, RecordKey};

use super::samples::{counter, job_state};
use super::test_writer::TestWriter;
use super::{Subject, block_on};
use crate::seeded_random::SeededRandom;
use crate::{Store, UnitRefusal};

/// Number of concurrent writers.
const WRITERS: u64 = 8;
/// Units of each writer.
const UNITS: u64 = 250;
/// Maximum attempts of one unit; each lost attempt means that another writer won.
const TRIES: usize = 100_000;
/// The total that is moved between counters.
const SUM: u64 = 1_000;

/// Writer numbers are unique among concurrent writers and across restarts.
pub fn writer_numbers_are_unique(subject: &dyn Subject) {
    let mut numbers = BTreeSet::new();
    let mut count = 0;
    for _ in 0..3 {
        let stores: Vec<Arc<dyn Store>> = (0..WRITERS).map(|_| subject.store()).collect();
        let enroll = |store: Arc<dyn Store>| {
            let number = || block_on(store.enroll()).expect("writers can enroll").0;
            (0..50).map(|_| number()).collect::<Vec<u32>>()
        };
        for found in at_once(stores, enroll) {
            count += found.len();
            numbers.extend(found);
        }
        assert_eq!(numbers.len(), count, "every number is new");
        let after = block_on(subject.reopen().enroll()).expect("writers can enroll").0;
        assert!(numbers.insert(after), "{after} is new after a restart");
        count += 1;
    }
}

/// Concurrent increments of shared records with retries add up.
pub fn concurrent_increments_add_up(subject: &dyn Subject) {
    let keys = ["a", "b", "c"].map(|name| job_state(name, 0).key());
    TestWriter::of(subject).put_all(&["a", "b", "c"].map(|name| job_state(name, 0)));
    let writers: Vec<TestWriter> = (0..WRITERS).map(|_| TestWriter::of(subject)).collect();
    at_once(writers, |mut writer| {
        let mut chance = SeededRandom::new(u64::from(writer.writer));
        for _ in 0..UNITS {
            let one = chance.below(3);
            add(&mut writer, &[&keys[one], &keys[(one + 1) % 3]], |numbers| {
                numbers.iter_mut().for_each(|number| *number += 1);
            });
        }
    });
    let writer = TestWriter::of(subject);
    let counted: u64 = keys.iter().map(|key| counter(&writer.record(key).expect("it is there"))).sum();
    assert_eq!(counted, 2 * WRITERS * UNITS);
}

/// A load is a snapshot: a value that is moved between its records is never seen twice or missing.
pub fn load_is_a_snapshot(subject: &dyn Subject) {
    let names = ["a", "b", "c", "d"];
    let keys = names.map(|name| job_state(name, 0).key());
    TestWriter::of(subject).put_all(&names.map(|name| job_state(name, SUM / 4)));
    let writers: Vec<TestWriter> = (0..WRITERS).map(|_| TestWriter::of(subject)).collect();
    at_once(writers, |mut writer| {
        let mut chance = SeededRandom::new(u64::from(writer.writer));
        for _ in 0..UNITS / 2 {
            let from = chance.below(4);
            let to = (from + 1 + chance.below(3)) % 4;
            add(&mut writer, &[&keys[from], &keys[to]], |numbers| {
                let moved = numbers[0].min(7);
                (numbers[0], numbers[1]) = (numbers[0] - moved, numbers[1] + moved);
            });
            let seen: u64 = writer.load_all(&keys).iter().flatten().map(|stored| counter(&stored.record)).sum();
            assert_eq!(seen, SUM, "the sum is constant");
        }
    });
}

/// Changes counters in one unit, and retries until there is no conflict.
fn add(writer: &mut TestWriter, keys: &[&RecordKey], change: impl Fn(&mut [u64])) {
    let keys: Vec<RecordKey> = keys.iter().map(|key| (*key).clone()).collect();
    for _ in 0..TRIES {
        let found: Vec<_> = writer.load_all(&keys).into_iter().map(|found| found.expect("it is there")).collect();
        let mut numbers: Vec<u64> = found.iter().map(|stored| counter(&stored.record)).collect();
        change(&mut numbers);
        let mut draft = writer.unit();
        for (stored, number) in found.iter().zip(numbers) {
            let Record::JobState(state) = &stored.record else { unreachable!("it was a counter") };
            draft = draft.put(job_state(state.job.as_str(), number), Some(stored.version));
        }
        match writer.commit(draft) {
            Ok(_) => return,
            Err(UnitRefusal::Conflict(key)) => assert!(keys.contains(&key), "{key} was compared"),
            Err(other) => panic!("nothing else is in the way: {other}"),
        }
    }
    panic!("{TRIES} conflicts in a row");
}

/// Runs `act` on one thread per item, all at the same time.
pub(super) fn at_once<T: Send, R: Send>(each: Vec<T>, act: impl Fn(T) -> R + Sync) -> Vec<R> {
    let start = Barrier::new(each.len());
    let act = |one| {
        // Threads that start one after the other might finish before they overlap.
        start.wait();
        act(one)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = each.into_iter().map(|one| scope.spawn(|| act(one))).collect();
        threads.into_iter().map(|thread| thread.join().expect("the thread ends well")).collect()
    })
}

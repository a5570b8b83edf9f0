//! Cases about many writers at once: everyone has a number of their own, and no change is lost.

use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};
use std::thread;

use cronhold_core::record::{Record, RecordKey};

use super::samples::{counter, job_state};
use super::seeded_random::SeededRandom;
use super::test_writer::TestWriter;
use super::{Subject, block_on};
use crate::{Store, UnitRefusal};

/// Threads that write at the same time.
const WRITERS: u64 = 8;
/// What each of them does.
const UNITS: u64 = 250;
/// Tries of one unit: every other writer wins only so often.
const TRIES: usize = 100_000;
/// What there is to move from place to place.
const SUM: u64 = 1_000;

/// No two writers have the same number, whoever enrolls at the same time or after a restart.
pub fn writers_have_numbers_of_their_own(subject: &dyn Subject) {
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

/// Writers that count on shared records and try again when they lose count right.
pub fn no_change_is_lost(subject: &dyn Subject) {
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

/// A load sees all its records at one moment: what is moved between them is never seen twice or not at all.
pub fn a_load_sees_one_moment(subject: &dyn Subject) {
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
            assert_eq!(seen, SUM, "nothing comes or goes");
        }
    });
}

/// Changes counters in one unit, again and again until nobody came in between.
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
    panic!("someone else came in between {TRIES} times");
}

/// Does something on a thread for each of these at once.
pub(super) fn at_once<T: Send, R: Send>(each: Vec<T>, act: impl Fn(T) -> R + Sync) -> Vec<R> {
    let start = Barrier::new(each.len());
    let act = |one| {
        // Threads that begin one after the other might be done before they meet.
        start.wait();
        act(one)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = each.into_iter().map(|one| scope.spawn(|| act(one))).collect();
        threads.into_iter().map(|thread| thread.join().expect("the thread ends well")).collect()
    })
}

//! Cases about locks: one holder at a time, by the store's own time, with fences that only grow.

use cronhold_core::record::LockName;
use cronhold_schedule::Span;

use super::samples::{lock_name, node, run_id};
use super::test_writer::TestWriter;
use super::{Subject, block_on};
use crate::{UnitReceipt, UnitRefusal};

/// Long enough for a store with a real clock to act before and after expiry.
const TTL: Span = Span::from_millis(1_500);
/// Less than the TTL; twice this is more.
const PART: Span = Span::from_millis(1_000);

/// A lock has one holder until the holder releases it.
pub fn lock_has_one_holder(subject: &dyn Subject) {
    let (mut writer, mut other) = (TestWriter::of(subject), TestWriter::of(subject));
    let (lock, mine, theirs) = (lock_name("größe '\"%_"), run_id(0, 1), run_id(0, 2));
    assert_eq!(writer.lock(&lock), None);
    let first = writer.take(&lock, mine, None).expect("the lock is free");
    let held = writer.lock(&lock).expect("it was taken");
    assert_eq!((&held.name, held.holder, held.fence, held.until), (&lock, mine, first, None));
    assert_eq!(other.lock(&lock), Some(held), "another handle sees the same");

    assert_eq!(other.take(&lock, theirs, None), Err(UnitRefusal::Held { lock: lock.clone(), holder: mine }));
    other.free(&lock, theirs);
    assert_eq!(writer.holder(&lock), Some(mine), "only the holder frees a lock");
    other.free(&lock, mine);
    assert_eq!(writer.lock(&lock), None, "a lock belongs to a run and not to a writer");
    let second = other.take(&lock, theirs, None).expect("it is free");
    assert!(first < second, "fences grow: {first}, {second}");
    writer.free(&lock_name("never taken"), mine);
}

/// A run that takes a lock it already holds keeps it.
pub fn holder_can_take_its_lock_again(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let (lock, mine, theirs) = (lock_name("l"), run_id(0, 1), run_id(0, 2));
    let first = writer.take(&lock, mine, Some(TTL)).expect("the lock is free");
    subject.pass(PART);
    let again = writer.take(&lock, mine, Some(TTL)).expect("it is its own");
    assert!(first <= again, "fences never shrink: {first}, {again}");
    subject.pass(PART);
    let held = writer.lock(&lock).expect("it was taken for longer");
    assert_eq!((held.holder, held.fence), (mine, again));
    let held = Err(UnitRefusal::Held { lock: lock.clone(), holder: mine });
    assert_eq!(writer.take(&lock, theirs, None), held);
    writer.take(&lock, mine, None).expect("it is its own");
    subject.pass(TTL);
    assert_eq!(writer.holder(&lock), Some(mine), "it has no end any more");
}

/// Locks are released before others are taken, so one unit can hand a lock over.
pub fn unit_can_hand_a_lock_over(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let (lock, free, mine, theirs) = (lock_name("l"), lock_name("m"), run_id(0, 1), run_id(0, 2));
    let first = writer.take(&lock, mine, None).expect("the lock is free");
    let not_its_own = writer.unit().free(&lock, theirs).take(&lock, theirs, None).take(&free, theirs, None);
    assert_eq!(writer.commit(not_its_own), Err(UnitRefusal::Held { lock: lock.clone(), holder: mine }));
    assert_eq!(writer.lock(&free), None);
    let hand_over = writer.unit().take(&lock, theirs, None).free(&lock, mine).take(&free, theirs, None);
    let UnitReceipt { fences } = writer.commit(hand_over).expect("the holder frees it");
    let mut names: Vec<&LockName> = fences.iter().map(|(name, _)| name).collect();
    names.sort();
    assert_eq!(names, [&lock, &free]);
    let second = writer.lock(&lock).expect("it was taken");
    assert_eq!(second.holder, theirs);
    assert!(first < second.fence && fences.contains(&(lock, second.fence)), "{first}, {second:?}, {fences:?}");
}

/// A lock with a TTL expires after it, and not before.
pub fn lock_expires_after_its_ttl(subject: &dyn Subject) {
    let (mut writer, other) = (TestWriter::of(subject), TestWriter::of(subject));
    let (lock, mine, theirs) = (lock_name("l"), run_id(0, 1), run_id(0, 2));
    let before = block_on(writer.store.time()).expect("it has a time");
    let first = writer.take(&lock, mine, Some(TTL)).expect("the lock is free");
    let until = writer.lock(&lock).and_then(|lock| lock.until).expect("it has an end");
    assert!(until >= before.plus(TTL), "{until} is {TTL} after {before} or later");
    subject.pass(PART);
    assert_eq!(other.holder(&lock), Some(mine), "{PART} are not {TTL}");
    let held = Err(UnitRefusal::Held { lock: lock.clone(), holder: mine });
    assert_eq!(writer.take(&lock, theirs, None), held);
    subject.pass(PART);
    assert_eq!(other.lock(&lock), None, "twice {PART} is more than {TTL}");
    let second = writer.take(&lock, theirs, Some(TTL)).expect("it has run out");
    assert!(first < second, "fences grow: {first}, {second}");
    writer.free(&lock, mine);
    assert_eq!(writer.holder(&lock), Some(theirs), "it is not the old holder's to free");
}

/// A heartbeat renews locks for the TTL with which they were taken.
pub fn heartbeats_renew_locks(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let (lock, other, mine) = (lock_name("l"), lock_name("other"), run_id(0, 1));
    let fence = writer.take(&lock, mine, Some(TTL)).expect("the lock is free");
    writer.take(&other, mine, Some(TTL)).expect("the lock is free");
    let node = node(1, "n");
    for _ in 0..3 {
        subject.pass(PART);
        assert_eq!(writer.beat(&node, &[(lock.clone(), mine)]), []);
    }
    let held = writer.lock(&lock).expect("it was renewed");
    assert_eq!((held.holder, held.fence), (mine, fence), "a renewal changes nothing but the end");
    assert_eq!(writer.lock(&other), None, "only those that are named are renewed");
    subject.pass(PART);
    assert_eq!(writer.holder(&lock), Some(mine));
    subject.pass(PART);
    assert_eq!(writer.lock(&lock), None, "the lock was not renewed");
}

/// A heartbeat returns the locks that are lost, and does not take them again.
pub fn heartbeats_report_lost_locks(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let (mine, theirs, node) = (run_id(0, 1), run_id(0, 2), node(1, "n"));
    let [kept, forever, ran_out, taken, never] = ["kept", "forever", "ran out", "taken", "never"].map(lock_name);
    for lock in [&ran_out, &taken] {
        writer.take(lock, mine, Some(PART)).expect("the lock is free");
    }
    writer.take(&forever, mine, None).expect("the lock is free");
    subject.pass(TTL);
    writer.take(&taken, theirs, None).expect("it has run out");
    writer.take(&kept, mine, Some(TTL)).expect("the lock is free");
    let named = [&kept, &ran_out, &forever, &taken, &never].map(|lock| (lock.clone(), mine));
    let mut lost = writer.beat(&node, &named);
    lost.sort();
    assert_eq!(lost, [&never, &ran_out, &taken].map(|lock| (lock.clone(), mine)));
    // A run that does not hold a lock has lost it, also if another run of the node holds it.
    let both = [theirs, mine].map(|holder| (kept.clone(), holder));
    assert_eq!(writer.beat(&node, &both), [(kept.clone(), theirs)]);
    let holders = [&kept, &forever, &ran_out, &taken].map(|lock| writer.holder(lock));
    assert_eq!(holders, [Some(mine), Some(mine), None, Some(theirs)]);
}

/// A lock without a TTL is held until it is released.
pub fn lock_without_ttl_stays_held(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let (lock, mine) = (lock_name("l"), run_id(0, 1));
    writer.take(&lock, mine, None).expect("the lock is free");
    for _ in 0..3 {
        subject.pass(TTL);
        assert_eq!(writer.beat(&node(1, "n"), &[(lock.clone(), mine)]), []);
        assert_eq!(writer.lock(&lock).map(|lock| (lock.holder, lock.until)), Some((mine, None)));
    }
}

/// The fence of a lock grows with each holder, whatever happened in between.
pub fn fences_only_grow(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let lock = lock_name("l");
    let mut last = 0;
    for number in 0..40 {
        let ttl = (number % 8 == 7).then_some(PART);
        let fence = writer.take(&lock, run_id(0, number), ttl).expect("it is free");
        assert!(last < fence, "{fence} comes after {last}");
        last = fence;
        if ttl.is_some() {
            subject.pass(TTL);
        } else {
            writer.free(&lock, run_id(0, number));
        }
        if number % 16 == 15 {
            drop(writer);
            writer = TestWriter::on(subject.reopen());
        }
    }
    let millis = block_on(writer.store.time()).expect("it has a time").millis();
    let fence = writer.take(&lock_name("new"), run_id(0, 1), None).expect("it is free");
    assert!(i64::try_from(fence).is_ok_and(|fence| fence >= millis), "a store that forgot begins no lower: {fence}");
}

/// Expiry deletes the fences of free locks. A lock that is held stays, and the next fence of a lock is still higher.
pub fn expiry_keeps_held_locks_and_growing_fences(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let (held, free, mine) = (lock_name("held"), lock_name("free"), run_id(0, 1));
    let mark = LockName::of_request("k").expect("a name");
    writer.take(&held, mine, None).expect("the lock is free");
    let fence = writer.take(&free, mine, None).expect("the lock is free");
    writer.free(&free, mine);
    writer.take(&mark, mine, Some(TTL)).expect("the mark is free");
    let expire = |writer: &TestWriter, later: Span| {
        let now = block_on(writer.store.time()).expect("it has a time");
        block_on(writer.store.expire_locks(now.plus(later))).expect("the store works");
    };
    expire(&writer, TTL);
    assert_eq!([&held, &mark].map(|lock| writer.holder(lock)), [Some(mine); 2]);
    subject.pass(TTL);
    expire(&writer, Span::ZERO);
    assert_eq!([&held, &mark, &free].map(|lock| writer.holder(lock)), [Some(mine), None, None]);
    let next = writer.take(&free, run_id(0, 2), None).expect("the lock is free");
    assert!(next > fence, "{next} comes after {fence}");
    writer.take(&mark, run_id(0, 2), Some(TTL)).expect("it has expired");
}

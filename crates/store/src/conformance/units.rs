//! Cases about units: each is atomic, and units of one commit are independent.

use std::task::{Context, Waker};

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{Record, RecordKey, RecordVersion};
use cronhold_core::run::State;

use super::Subject;
use super::samples::{at, backlog, cursor, each_kind, job, job_state, lock_name, run_id, run_in};
use super::test_writer::{TestUnit, TestWriter};
use crate::{Fault, UnitReceipt, UnitRefusal};

/// Number of records of a large unit, and of units of a large commit.
const MANY: usize = 500;

/// If one of many records has changed, the whole unit is rejected, whichever record it is.
pub fn one_conflict_rejects_the_unit(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let (held, free, holder) = (lock_name("held"), lock_name("free"), run_id(0, 1));
    writer.take(&held, holder, None).expect("the lock is free");
    let kinds = each_kind();
    for (wrong, (record, _)) in kinds.iter().enumerate() {
        let before: Vec<Option<RecordVersion>> =
            kinds.iter().map(|(record, _)| writer.version(&record.key())).collect();
        let mut draft = writer.unit().take(&free, holder, None).free(&held, holder);
        for (index, (_, changed)) in kinds.iter().enumerate() {
            let seen = if index == wrong { Some(RecordVersion::new(writer.writer, 999_999)) } else { before[index] };
            draft = draft.put(changed.clone(), seen);
        }
        assert_eq!(writer.commit(draft), Err(UnitRefusal::Conflict(record.key())));
        let after: Vec<Option<RecordVersion>> = kinds.iter().map(|(record, _)| writer.version(&record.key())).collect();
        assert_eq!(after, before, "nothing was written when {} had changed", record.key());
        assert_eq!(writer.holder(&free), None, "the lock was not taken");
        assert_eq!(writer.holder(&held), Some(holder), "the lock was not freed");
        // The next round changes records instead of creating them.
        writer.put(record);
    }
}

/// If one of several locks is held, the whole unit is rejected.
pub fn one_held_lock_rejects_the_unit(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let locks = ["a", "b", "c"].map(lock_name);
    let (mine, other) = (run_id(0, 1), run_id(0, 2));
    writer.take(&locks[1], other, None).expect("the lock is free");
    let old = writer.put(&job("x", "old"));
    let mut draft = writer.unit().put(job("x", "new"), Some(old)).delete(job("y", "").key(), None);
    for lock in &locks {
        draft = draft.take(lock, mine, None);
    }
    let held = UnitRefusal::Held { lock: locks[1].clone(), holder: other };
    assert_eq!(writer.commit(draft), Err(held));
    assert_eq!(writer.version(&job("x", "").key()), Some(old));
    assert_eq!(locks.each_ref().map(|lock| writer.holder(lock)), [None, Some(other), None]);
}

/// A unit can build on what an earlier unit of the same commit writes.
pub fn units_of_a_commit_apply_in_order(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let mut seen = None;
    let mut drafts = Vec::new();
    for number in 1..=100 {
        let draft = writer.unit().put(job_state("a", number), seen);
        seen = Some(draft.version());
        drafts.push(draft);
    }
    let results = writer.commit_all(drafts);
    assert_eq!(results, vec![Ok(UnitReceipt::default()); 100]);
    let stored = writer.load(&job_state("a", 0).key()).expect("it was written");
    assert_eq!((Some(stored.version), stored.record), (seen, job_state("a", 100)));
}

/// A failed unit fails the units that build on it, and no others.
pub fn units_of_a_commit_fail_independently(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let (lock, holder, other) = (lock_name("l"), run_id(0, 1), run_id(0, 2));
    writer.put(&job_state("a", 1));
    let fails = writer.unit().put(job_state("a", 2), None).put(job_state("new", 1), None).take(&lock, other, None);
    let depends = writer.unit().put(job_state("new", 2), Some(fails.version()));
    let independent = writer.unit().put(job_state("b", 1), None).take(&lock, holder, None);
    let held = writer.unit().put(job_state("c", 1), None).take(&lock, other, None);
    let follows = writer.unit().put(job_state("b", 2), Some(independent.version())).free(&lock, holder);
    let free_again = writer.unit().take(&lock, other, None);
    let results = writer.commit_all(vec![fails, depends, independent, held, follows, free_again]);
    let outcomes: Vec<String> = results.iter().map(outcome).collect();
    let expected = [
        "state of a has changed".to_owned(),
        "state of new has changed".to_owned(),
        "done".to_owned(),
        format!("the lock `l` is held by run {holder}"),
        "done".to_owned(),
        "done".to_owned(),
    ];
    assert_eq!(outcomes, expected);
    let keys = ["a", "new", "b", "c"].map(|name| job_state(name, 0).key());
    let numbers = writer.load_all(&keys).into_iter().map(|stored| stored.map(|stored| stored.record));
    let expected = [Some(job_state("a", 1)), None, Some(job_state("b", 2)), None];
    assert!(numbers.eq(expected), "only committed units are visible");
    assert_eq!(writer.holder(&lock), Some(other));
}

/// A unit that does not have the required form is refused permanently. Other units of its commit take effect.
pub fn invalid_unit_fails_alone(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let (lock, holder) = (lock_name("l"), run_id(0, 1));
    let first = writer.unit().put(job_state("b", 1), None);
    let second = writer.unit().put(job_state("b", 2), Some(first.version()));
    let mut drafts = vec![first];
    let RecordKey::Job(id) = job("x", "").key() else { panic!("the key of a job") };
    let put = || RecordChange::Put(job_state("a", 1));
    for changes in [vec![put()], vec![RecordChange::Delete(RecordKey::Foreign(id.clone()))], vec![put(), put()]] {
        let mut draft = writer.unit().put(job_state("c", 1), None).take(&lock, holder, None);
        if changes.len() > 1 {
            draft = draft.compare(job_state("a", 1).key(), None);
        }
        if matches!(changes[0], RecordChange::Delete(_)) {
            draft = draft.compare(RecordKey::Foreign(id.clone()), None);
        }
        draft.0.changes.extend(changes);
        drafts.push(draft);
    }
    drafts.push(writer.unit().put(job_state("c", 1), None).compare(RecordKey::Lock(lock.clone()), None));
    let invalid = drafts.len() - 1;
    drafts.push(second);
    let results = writer.commit_all(drafts);
    for (number, result) in results.iter().enumerate() {
        let is_invalid = (1..=invalid).contains(&number);
        assert_eq!(matches!(result, Err(UnitRefusal::Fault(Fault::Permanent(_)))), is_invalid, "{number}: {result:?}");
        assert_eq!(result.is_ok(), !is_invalid, "{number}: {result:?}");
    }
    let keys = ["a", "b", "c"].map(|name| job_state(name, 0).key());
    let found: Vec<_> = writer.load_all(&keys).into_iter().map(|stored| stored.map(|stored| stored.record)).collect();
    assert_eq!(found, [None, Some(job_state("b", 2)), None]);
    assert_eq!(writer.holder(&lock), None);
}

/// A unit that is sent again is rejected, and the records it wrote have its version. This is how a writer that received
/// no reply finds out the outcome.
pub fn unit_takes_effect_once(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let make = writer.unit().put(job_state("a", 1), None).put(cursor("a", "s", Some(at(1))), None);
    let made = make.version();
    assert_eq!(writer.commit(make.clone()), Ok(UnitReceipt::default()));
    let again = writer.commit(make);
    assert!(matches!(again, Err(UnitRefusal::Conflict(_))), "{again:?}");
    assert_eq!(writer.version(&job_state("a", 0).key()), Some(made));

    let change = writer.unit().put(job_state("a", 2), Some(made));
    let changed = change.version();
    let results = writer.commit_all(vec![change.clone(), change]);
    let outcomes: Vec<String> = results.iter().map(outcome).collect();
    assert_eq!(outcomes, ["done", "state of a has changed"]);
    assert_eq!(writer.version(&job_state("a", 0).key()), Some(changed));
}

/// A commit whose future was dropped is applied completely or not at all; sending it again settles it.
pub fn abandoned_commit_can_be_sent_again(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let mut seen = None;
    for number in 1..=40 {
        let records = ["a", "b", "c"].map(|name| job_state(name, number));
        let draft = records.iter().fold(writer.unit(), |draft, record| draft.put(record.clone(), seen));
        let version = draft.version();
        let mut commit = writer.store.commit(vec![draft.0.clone()]);
        if number % 2 == 0 {
            // The commit may be done, in flight, or not started.
            let _ = commit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        drop(commit);
        let again = writer.commit(draft);
        assert!(matches!(again, Ok(_) | Err(UnitRefusal::Conflict(_))), "{again:?}");
        let keys = records.each_ref().map(Record::key);
        let versions = writer.load_all(&keys).into_iter().map(|stored| stored.map(|stored| stored.version));
        assert_eq!(versions.collect::<Vec<_>>(), [Some(version); 3], "it was done once, in whole, after {again:?}");
        seen = Some(version);
    }
}

/// If no foreign node has run a job, the foreign record can be loaded and compared as absent.
pub fn absent_foreign_runs_can_be_compared(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let RecordKey::Job(id) = job("x", "").key() else { panic!("the key of a job") };
    let key = RecordKey::Foreign(id);
    assert_eq!(writer.load_all(&[key.clone(), job("x", "").key()]), [None, None]);
    let draft = writer.unit().compare(key.clone(), None).put(job("x", "new"), None);
    writer.commit(draft).expect("it is as it was seen");
    assert_eq!((writer.load(&key), writer.record(&job("x", "").key())), (None, Some(job("x", "new"))));
}

/// Empty units and empty commits succeed.
pub fn empty_units_and_commits_succeed(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    assert_eq!(writer.commit_all(Vec::new()), []);
    let nothing = writer.unit();
    assert_eq!(writer.commit(nothing), Ok(UnitReceipt::default()));
    let compares = writer.unit().compare(RecordKey::Pause, None);
    assert_eq!(writer.commit(compares), Ok(UnitReceipt::default()));
    let compares = writer.unit().compare(RecordKey::Pause, Some(RecordVersion::new(1, 1)));
    assert_eq!(writer.commit(compares), Err(UnitRefusal::Conflict(RecordKey::Pause)));
}

/// A unit can be as large as a job with a long history.
pub fn unit_can_have_many_records(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let records = many();
    let version = writer.put_all(&records);
    let keys: Vec<RecordKey> = records.iter().map(Record::key).collect();
    let found = writer.load_all(&keys);
    for (record, found) in records.iter().zip(found) {
        let stored = found.expect("it was written");
        assert_eq!((stored.version, &stored.record), (version, record));
    }
    let delete = |draft: TestUnit| keys.iter().fold(draft, |draft, key| draft.delete(key.clone(), Some(version)));
    let fails = delete(writer.unit()).compare(RecordKey::Pause, Some(version));
    assert_eq!(writer.commit(fails), Err(UnitRefusal::Conflict(RecordKey::Pause)));
    assert!(writer.load_all(&keys).iter().all(Option::is_some), "all or nothing");
    let done = delete(writer.unit());
    assert_eq!(writer.commit(done), Ok(UnitReceipt::default()));
    assert!(writer.load_all(&keys).iter().all(Option::is_none), "all are gone");
}

/// A commit can have many units, each with its own result.
pub fn commit_can_have_many_units(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let name = |number: usize| format!("job {number}");
    for number in (0..MANY).step_by(7) {
        writer.put(&job_state(&name(number), 1));
    }
    let drafts: Vec<TestUnit> = (0..MANY).map(|number| writer.unit().put(job_state(&name(number), 2), None)).collect();
    let results = writer.commit_all(drafts);
    assert_eq!(results.len(), MANY);
    for (number, result) in results.iter().enumerate() {
        assert_eq!(result.is_err(), number % 7 == 0, "unit {number}: {result:?}");
    }
}

fn many() -> Vec<Record> {
    let mut records = Vec::new();
    for number in 0..MANY / 5 {
        let name = format!("folder/job {number}");
        let id = run_id(i64::try_from(number).expect("it is small"), 1);
        records.extend([
            job(&name, "many"),
            job_state(&name, 5),
            cursor(&name, "s", Some(at(3))),
            backlog(&name, "s", at(4)),
            run_in(id, &name, State::Running, Some(1)),
        ]);
    }
    records
}

fn outcome(result: &Result<UnitReceipt, UnitRefusal>) -> String {
    match result {
        Ok(_) => "done".to_owned(),
        Err(refusal) => refusal.to_string(),
    }
}

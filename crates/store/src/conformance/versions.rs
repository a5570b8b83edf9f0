//! Cases about versions: a record is only written by someone who knows what it was.

use cronhold_core::record::{Key, Version};

use super::Subject;
use super::samples::{cursor, each_kind, job, job_state, lock_name, run_id};
use super::scribe::Scribe;
use crate::{Committed, Refusal};

/// A record of any kind can be made once, changed by someone who knows it, and by nobody else.
pub fn a_record_is_written_by_those_who_know_it(subject: &dyn Subject) {
    let mut scribe = Scribe::of(subject);
    for (first, second) in each_kind() {
        let key = first.key();
        assert_eq!(scribe.load(&key), None, "{key} is not there yet");

        let unknown = scribe.unit().put(first.clone(), Some(Version::new(scribe.writer, 1_000)));
        assert_eq!(scribe.commit(unknown), Err(Refusal::Conflict(key.clone())), "{key}: it is not there");
        let make = scribe.unit().put(first.clone(), None);
        let made = make.version();
        assert_eq!(scribe.commit(make), Ok(Committed::default()), "{key} can be made");
        let again = scribe.unit().put(second.clone(), None);
        assert_eq!(scribe.commit(again), Err(Refusal::Conflict(key.clone())), "{key} is there already");
        let stored = scribe.load(&key).expect("it was made");
        assert_eq!((stored.version, &stored.record), (made, &first), "{key} is as it was made");

        let change = scribe.unit().put(second.clone(), Some(made));
        let changed = change.version();
        assert_eq!(scribe.commit(change), Ok(Committed::default()), "{key} can be changed");
        let late = scribe.unit().put(first.clone(), Some(made));
        assert_eq!(scribe.commit(late), Err(Refusal::Conflict(key.clone())), "{key} was changed meanwhile");
        let stored = scribe.load(&key).expect("it is there");
        assert_eq!((stored.version, stored.record), (changed, second), "{key} is as it was changed");
    }
}

/// A record of any kind can be deleted by someone who knows it; then it is as if it had never been.
pub fn a_deleted_record_is_not_there(subject: &dyn Subject) {
    let mut scribe = Scribe::of(subject);
    for (record, _) in each_kind() {
        let key = record.key();
        let version = scribe.put(&record);
        for wrong in [None, Some(Version::new(scribe.writer, 999_999))] {
            let unknown = scribe.unit().delete(key.clone(), wrong);
            assert_eq!(scribe.commit(unknown), Err(Refusal::Conflict(key.clone())), "{key}, not {wrong:?}");
        }
        assert_eq!(scribe.version(&key), Some(version), "{key} is still there");

        let delete = scribe.unit().delete(key.clone(), Some(version));
        assert_eq!(scribe.commit(delete), Ok(Committed::default()), "{key} can be deleted");
        assert_eq!(scribe.load(&key), None, "{key} is gone");
        let change = scribe.unit().put(record.clone(), Some(version));
        assert_eq!(scribe.commit(change), Err(Refusal::Conflict(key.clone())), "{key} is gone");
        let nothing = scribe.unit().delete(key.clone(), None);
        assert_eq!(scribe.commit(nothing), Ok(Committed::default()), "{key} is as gone as it should be");
        let version = scribe.put(&record);
        assert_eq!(scribe.version(&key), Some(version), "{key} can be made again");
    }
}

/// A unit can depend on records that it does not change.
pub fn records_can_be_compared_without_a_change(subject: &dyn Subject) {
    let mut scribe = Scribe::of(subject);
    let counter = job_state("counter", 1);
    for (index, (record, changed)) in each_kind().into_iter().enumerate() {
        let key = record.key();
        scribe.put(&counter);
        let seen = scribe.version(&counter.key());
        let absent = scribe.unit().compare(key.clone(), None).put(counter.clone(), seen);
        assert_eq!(scribe.commit(absent), Ok(Committed::default()), "{key} is not there");

        let version = scribe.put(&record);
        let seen = scribe.version(&counter.key());
        let wrong = scribe.unit().compare(key.clone(), None).put(job_state("counter", 99), seen);
        assert_eq!(scribe.commit(wrong), Err(Refusal::Conflict(key.clone())), "{key} is there");
        let right = scribe.unit().compare(key.clone(), Some(version)).put(counter.clone(), seen);
        let written = right.version();
        assert_eq!(scribe.commit(right), Ok(Committed::default()), "{key} has that version");
        assert_eq!(scribe.version(&key), Some(version), "{key} was only compared");

        scribe.put(&changed);
        let late = scribe.unit().compare(key.clone(), Some(version)).put(job_state("counter", 99), Some(written));
        assert_eq!(scribe.commit(late), Err(Refusal::Conflict(key.clone())), "{key} was changed");
        let stored = scribe.load(&counter.key()).expect("it is there");
        assert_eq!((stored.version, stored.record), (written, counter.clone()), "round {index} left it alone");
    }
}

/// Of many records the one that has changed is named.
pub fn a_conflict_names_what_has_changed(subject: &dyn Subject) {
    let mut scribe = Scribe::of(subject);
    let records: Vec<_> = ["a", "b", "c", "d"].map(|name| job(name, "")).into_iter().collect();
    let old = scribe.put_all(&records);
    scribe.put(&job("c", "changed"));
    let mut draft = scribe.unit();
    for record in &records {
        draft = draft.put(record.clone(), Some(old));
    }
    assert_eq!(scribe.commit(draft), Err(Refusal::Conflict(records[2].key())));
}

/// What is loaded comes in the order that was asked for, absent and repeated keys included.
pub fn loads_answer_in_order(subject: &dyn Subject) {
    let mut scribe = Scribe::of(subject);
    let records = [job("b", ""), cursor("a", "s", None), job("a", ""), job_state("a", 1)];
    scribe.put_all(&records);
    let absent = [Key::Lock(lock_name("none")), Key::Run(run_id(1, 1)), job("c", "").key(), Key::Pause];
    let mut keys = vec![absent[0].clone()];
    for (record, absent) in records.iter().zip(&absent) {
        keys.extend([record.key(), absent.clone(), record.key()]);
    }
    let found = scribe.load_all(&keys);
    for (key, found) in keys.iter().zip(found) {
        let expected = (!absent.contains(key)).then_some(key);
        assert_eq!(found.map(|stored| stored.record.key()).as_ref(), expected, "{key}");
    }
    assert_eq!(scribe.load_all(&[]), []);
}

//! Cases about versions: only a writer that knows the current version can change a record.

use cronhold_core::record::{RecordKey, RecordVersion};

use super::Subject;
use super::samples::{cursor, each_kind, job, job_state, lock_name, run_id};
use super::test_writer::TestWriter;
use crate::{UnitReceipt, UnitRefusal};

/// A record of any kind can be created once, and changed only with its current version.
pub fn record_is_written_only_with_its_version(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    for (first, second) in each_kind() {
        let key = first.key();
        assert_eq!(writer.load(&key), None, "{key} is not there yet");

        let unknown = writer.unit().put(first.clone(), Some(RecordVersion::new(writer.writer, 1_000)));
        assert_eq!(writer.commit(unknown), Err(UnitRefusal::Conflict(key.clone())), "{key}: it is not there");
        let make = writer.unit().put(first.clone(), None);
        let made = make.version();
        assert_eq!(writer.commit(make), Ok(UnitReceipt::default()), "{key} can be created");
        let again = writer.unit().put(second.clone(), None);
        assert_eq!(writer.commit(again), Err(UnitRefusal::Conflict(key.clone())), "{key} is there already");
        let stored = writer.load(&key).expect("it was made");
        assert_eq!((stored.version, &stored.record), (made, &first), "{key} is stored as created");

        let change = writer.unit().put(second.clone(), Some(made));
        let changed = change.version();
        assert_eq!(writer.commit(change), Ok(UnitReceipt::default()), "{key} can be changed");
        let late = writer.unit().put(first.clone(), Some(made));
        assert_eq!(writer.commit(late), Err(UnitRefusal::Conflict(key.clone())), "{key} was changed meanwhile");
        let stored = writer.load(&key).expect("it is there");
        assert_eq!((stored.version, stored.record), (changed, second), "{key} is as it was changed");
    }
}

/// A record of any kind can be deleted with its current version, and is absent afterwards.
pub fn deleted_record_is_absent(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    for (record, _) in each_kind() {
        let key = record.key();
        let version = writer.put(&record);
        for wrong in [None, Some(RecordVersion::new(writer.writer, 999_999))] {
            let unknown = writer.unit().delete(key.clone(), wrong);
            assert_eq!(writer.commit(unknown), Err(UnitRefusal::Conflict(key.clone())), "{key}, not {wrong:?}");
        }
        assert_eq!(writer.version(&key), Some(version), "{key} is still there");

        let delete = writer.unit().delete(key.clone(), Some(version));
        assert_eq!(writer.commit(delete), Ok(UnitReceipt::default()), "{key} can be deleted");
        assert_eq!(writer.load(&key), None, "{key} is gone");
        let change = writer.unit().put(record.clone(), Some(version));
        assert_eq!(writer.commit(change), Err(UnitRefusal::Conflict(key.clone())), "{key} is gone");
        let nothing = writer.unit().delete(key.clone(), None);
        assert_eq!(writer.commit(nothing), Ok(UnitReceipt::default()), "{key} is as gone as it should be");
        let version = writer.put(&record);
        assert_eq!(writer.version(&key), Some(version), "{key} can be created again");
    }
}

/// A unit can depend on records that it does not change.
pub fn records_can_be_compared_without_a_change(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let counter = job_state("counter", 1);
    for (index, (record, changed)) in each_kind().into_iter().enumerate() {
        let key = record.key();
        writer.put(&counter);
        let seen = writer.version(&counter.key());
        let absent = writer.unit().compare(key.clone(), None).put(counter.clone(), seen);
        assert_eq!(writer.commit(absent), Ok(UnitReceipt::default()), "{key} is not there");

        let version = writer.put(&record);
        let seen = writer.version(&counter.key());
        let wrong = writer.unit().compare(key.clone(), None).put(job_state("counter", 99), seen);
        assert_eq!(writer.commit(wrong), Err(UnitRefusal::Conflict(key.clone())), "{key} is there");
        let right = writer.unit().compare(key.clone(), Some(version)).put(counter.clone(), seen);
        let written = right.version();
        assert_eq!(writer.commit(right), Ok(UnitReceipt::default()), "{key} has that version");
        assert_eq!(writer.version(&key), Some(version), "{key} was only compared");

        writer.put(&changed);
        let late = writer.unit().compare(key.clone(), Some(version)).put(job_state("counter", 99), Some(written));
        assert_eq!(writer.commit(late), Err(UnitRefusal::Conflict(key.clone())), "{key} was changed");
        let stored = writer.load(&counter.key()).expect("it is there");
        assert_eq!((stored.version, stored.record), (written, counter.clone()), "round {index} left it alone");
    }
}

/// A conflict names the record that has changed.
pub fn conflict_names_the_changed_record(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let records: Vec<_> = ["a", "b", "c", "d"].map(|name| job(name, "")).into_iter().collect();
    let old = writer.put_all(&records);
    writer.put(&job("c", "changed"));
    let mut draft = writer.unit();
    for record in &records {
        draft = draft.put(record.clone(), Some(old));
    }
    assert_eq!(writer.commit(draft), Err(UnitRefusal::Conflict(records[2].key())));
}

/// Records are returned in the order of the requested keys, including absent and repeated keys.
pub fn loads_keep_the_requested_order(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let records = [job("b", ""), cursor("a", "s", None), job("a", ""), job_state("a", 1)];
    writer.put_all(&records);
    let absent =
        [RecordKey::Lock(lock_name("none")), RecordKey::Run(run_id(1, 1)), job("c", "").key(), RecordKey::Pause];
    let mut keys = vec![absent[0].clone()];
    for (record, absent) in records.iter().zip(&absent) {
        keys.extend([record.key(), absent.clone(), record.key()]);
    }
    let found = writer.load_all(&keys);
    for (key, found) in keys.iter().zip(found) {
        let expected = (!absent.contains(key)).then_some(key);
        assert_eq!(found.map(|stored| stored.record.key()).as_ref(), expected, "{key}");
    }
    assert_eq!(writer.load_all(&[]), []);
}

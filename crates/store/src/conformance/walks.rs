//! Cases about walks: all records of a kind are returned, from one place to the next, while others write.

use std::collections::BTreeMap;

use cronhold_core::record::{Record, RecordKey, RecordKind, RecordVersion};

use super::samples::{action, at, each_kind, identity, job_state, lock_name, run_id, run_in, skip_span, triggers};
use super::test_writer::TestWriter;
use super::{Subject, block_on};
use crate::{WalkPage, WalkPlace};
use cronhold_core::State;

/// Records of one kind.
const MANY: usize = 300;

/// Every record of every kind that units write is returned once with its version, and no record of another kind.
pub fn walk_returns_each_record_once(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let mut records: Vec<Record> = each_kind().into_iter().map(|(record, _)| record).collect();
    for number in 0..20 {
        let (name, secs) = (format!("größe/{number}"), i64::from(number));
        records.push(job_state(&name, 1));
        records.push(identity(&name, &[("x", "1"), ("y", "\"\n")]));
        records.push(run_in(run_id(secs, 7), &name, State::Success, Some(1)));
        records.push(Record::SkipSpan(skip_span(run_id(secs, 8), &name, 3).into()));
        // Also those that no list has.
        records.push(action(run_id(secs, 7), 1, (number % 2 == 0).then(|| at(1))));
        records.push(triggers(&name, (number % 2 == 0).then(|| at(1))));
    }
    let version = writer.put_all(&records);
    let mut kinds: BTreeMap<RecordKind, Vec<&Record>> = BTreeMap::new();
    records.iter().for_each(|record| kinds.entry(record.key().kind()).or_default().push(record));
    for (kind, written) in kinds {
        for limit in [1, 7, 1_000] {
            let mut found = walk(&writer, kind, limit, |_| {});
            assert_eq!(found.len(), written.len(), "{kind:?} in pages of {limit}");
            for record in &written {
                let stored = found.remove(&record.key());
                assert_eq!(stored, Some((version, (*record).clone())), "in pages of {limit}");
            }
        }
    }
    for kind in [RecordKind::Lock, RecordKind::Node, RecordKind::Foreign] {
        assert_eq!(walk(&writer, kind, 10, |_| {}), BTreeMap::new());
    }
}

/// Records that are not changed are returned once, although others are created, changed and deleted during the walk. A
/// walk continues from a place whose record is deleted.
pub fn walk_continues_while_others_write(subject: &dyn Subject) {
    let (mut writer, mut other) = (TestWriter::of(subject), TestWriter::of(subject));
    let name = |number: usize| format!("job {number:03}");
    let records: Vec<Record> = (0..MANY).map(|number| job_state(&name(number), 1)).collect();
    let version = writer.put_all(&records);
    let mut round = 0;
    let found = walk(&writer, RecordKind::JobState, 10, |page: &WalkPage| {
        // The last record of the page is deleted, a new one is created behind it, and another one is changed.
        if let Some(last) = page.records.last().filter(|_| round % 3 == 0) {
            other.delete(&last.record.key());
        }
        other.put(&job_state(&format!("new {round}"), 1));
        other.put(&job_state(&name(round % MANY / 7 * 7), 2));
        round += 1;
    });
    for record in records.iter().skip(1).step_by(7) {
        if writer.version(&record.key()) == Some(version) {
            assert_eq!(found.get(&record.key()), Some(&(version, record.clone())));
        }
    }
    let left = walk(&writer, RecordKind::JobState, 1_000, |_| {});
    let unchanged: Vec<&RecordKey> =
        left.iter().filter(|(_, (found, _))| *found == version).map(|(key, _)| key).collect();
    assert!(unchanged.len() > MANY / 2, "{} records are unchanged", unchanged.len());
    assert!(unchanged.iter().all(|key| found.contains_key(key)), "each of them was returned");
}

/// Locks that are held are returned with holder, fence and end, and nodes as they are stored.
pub fn walk_returns_held_locks_and_nodes(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let names: Vec<_> = (0..25).map(|number| lock_name(&format!("größe {number}"))).collect();
    let mut expected = BTreeMap::new();
    for (number, name) in (0..).zip(&names) {
        let holder = run_id(1, number);
        writer.take(name, holder, None).expect("the lock is free");
        match number % 5 {
            0 => writer.free(name, holder),
            _ => drop(expected.insert(RecordKey::Lock(name.clone()), writer.load(&RecordKey::Lock(name.clone())))),
        }
    }
    let found = walk(&writer, RecordKind::Lock, 4, |_| {});
    assert_eq!(found.len(), expected.len());
    for (key, stored) in expected {
        let stored = stored.expect("it is held");
        assert_eq!(found.get(&key), Some(&(stored.version, stored.record)));
    }
    for number in 1..5 {
        writer.beat(&super::samples::node(number, "n"), &[]);
    }
    let nodes = walk(&writer, RecordKind::Node, 3, |_| {});
    assert!(nodes.iter().all(|(key, (version, _))| writer.version(key) == Some(*version)));
    assert_eq!(nodes.len(), 4);
}

/// All records of a walk. Calls `between` after each page. Panics if a record is returned twice with the same version.
fn walk(
    writer: &TestWriter,
    kind: RecordKind,
    limit: usize,
    mut between: impl FnMut(&WalkPage),
) -> BTreeMap<RecordKey, (RecordVersion, Record)> {
    let mut found = BTreeMap::new();
    let mut place: Option<WalkPlace> = None;
    loop {
        let page = block_on(writer.store.walk(kind, place.as_ref(), limit)).expect("a store that works");
        assert_eq!(page.unreadable, []);
        for stored in &page.records {
            let key = stored.record.key();
            let earlier = found.insert(key.clone(), (stored.version, stored.record.clone()));
            assert!(earlier.is_none_or(|(version, _)| version != stored.version), "{key} is returned twice");
        }
        between(&page);
        place = page.next;
        if place.is_none() {
            return found;
        }
    }
}

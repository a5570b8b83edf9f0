//! Cases about durability: confirmed data survives closing and opening the store, and the store's clock advances.

use std::sync::Arc;

use cronhold_core::State;
use cronhold_core::record::{Record, RecordKey, StoredRecord};
use cronhold_schedule::Span;

use super::rich_jobs::jobs;
use super::rich_records::{nodes, records};
use super::samples::{at, job_id, job_state, lock_name, node, run_id, run_in};
use super::test_writer::TestWriter;
use super::{Subject, block_on};
use crate::{Obligation, Query, RunQuery, Store, UnitRefusal};

/// Records, locks, outputs and lists are the same after a restart.
pub fn everything_survives_a_restart(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let mut all = records();
    all.extend(jobs().into_iter().map(|job| Record::Job(Arc::new(job))));
    writer.put_all(&all);
    let gone = job_state("gone", 1);
    writer.put(&gone);
    writer.delete(&gone.key());
    let mut keys: Vec<RecordKey> = all.iter().map(Record::key).collect();
    for node in nodes() {
        writer.beat(&node, &[]);
        keys.push(RecordKey::Node(node.id));
    }
    for (name, ttl) in [("forever", None), ("long", Some(Span::from_secs(1_000)))] {
        writer.take(&lock_name(name), run_id(0, 1), ttl).expect("the lock is free");
        keys.push(RecordKey::Lock(lock_name(name)));
    }
    keys.push(gone.key());
    block_on(writer.store.append(run_id(1, 1), 0, b"hello")).expect("it can be appended");

    let before = StoreSnapshot::at(&writer, &keys);
    drop(writer);
    let writer = TestWriter::on(subject.reopen());
    let after = StoreSnapshot::at(&writer, &keys);
    for (key, (before, after)) in keys.iter().zip(before.records.iter().zip(&after.records)) {
        assert_eq!(before, after, "{key}");
    }
    assert!(before == after, "lists and outputs are the same too");
    assert!(after.lists.iter().all(|list| !list.is_empty()) && !after.due.is_empty(), "there is something to compare");
    assert_eq!(after.output, b"hello");
    assert_eq!(writer.load(&gone.key()), None, "deleted records stay deleted");
}

/// Versions, locks and outputs continue after a restart.
pub fn work_continues_after_a_restart(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let (lock, mine, theirs) = (lock_name("l"), run_id(0, 1), run_id(0, 2));
    writer.put(&run_in(mine, "a", State::Running, Some(1)));
    writer.take(&lock, mine, None).expect("the lock is free");
    block_on(writer.store.append(mine, 0, b"abc")).expect("it can be appended");
    let mut version = writer.put(&job_state("a", 0));
    for number in 1..=4 {
        drop(writer);
        writer = TestWriter::on(subject.reopen());
        let absent = writer.unit().put(job_state("a", 99), None);
        assert_eq!(writer.commit(absent), Err(UnitRefusal::Conflict(job_state("a", 0).key())));
        let next = writer.unit().put(job_state("a", number), Some(version));
        version = next.version();
        writer.commit(next).expect("it has the version from before the restart");
        let held = Err(UnitRefusal::Held { lock: lock.clone(), holder: mine });
        assert_eq!(writer.take(&lock, theirs, None), held);
        assert_eq!(writer.beat(&node(1, "n"), &[(lock.clone(), mine)]), []);
        let length = block_on(writer.store.append(mine, 2 + number, b"c."));
        assert_eq!(length, Ok(3 + number + 1), "the append continues at the end");
    }
}

/// The store's clock advances for all handles and never goes back.
pub fn clock_advances(subject: &dyn Subject) {
    let (one, other) = (subject.store(), subject.store());
    let time = |store: &dyn Store| block_on(store.time()).expect("it has a time");
    let mut last = time(&*one);
    for number in 0..4 {
        let store = if number % 2 == 0 { &other } else { &one };
        assert!(time(&**store) >= last, "it does not go back");
        last = time(&**store);
        subject.pass(Span::from_secs(1));
        let now = time(&**store);
        assert!(now >= last.plus(Span::from_secs(1)), "{now} is a second after {last}, or later");
        last = now;
    }
}

/// A working store reports no trouble, and counts commits.
pub fn healthy_store_reports_no_trouble(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let before = block_on(writer.store.health());
    assert_eq!(before.trouble, None);
    assert!(!before.description.is_empty(), "the description is not empty");
    let drafts = (0..10).map(|number| writer.unit().put(job_state(&format!("job {number}"), 1), None)).collect();
    assert!(writer.commit_all(drafts).iter().all(Result::is_ok));
    let after = block_on(writer.store.health());
    assert_eq!(after.trouble, None);
    assert!(after.units >= before.units + 10, "{} and 10 are at most {}", before.units, after.units);
    assert!(after.commits > before.commits, "{} is more than {}", after.commits, before.commits);
}

/// The observable content of a store.
#[derive(Debug, PartialEq)]
struct StoreSnapshot {
    records: Vec<Option<StoredRecord>>,
    lists: Vec<Vec<StoredRecord>>,
    due: Vec<Obligation>,
    output: Vec<u8>,
}

impl StoreSnapshot {
    fn at(writer: &TestWriter, keys: &[RecordKey]) -> Self {
        let queries = [
            Query::Jobs { after: None },
            Query::JobStates { after: None },
            Query::Cursors { after: None },
            Query::Backlogs { after: None },
            Query::Nodes { after: None },
            Query::Runs(RunQuery::default()),
            Query::Runs(RunQuery { job: Some(job_id("a/b")), ..RunQuery::default() }),
            Query::Unfinished { node: None, after: None },
        ];
        let lists = queries.iter().map(|query| writer.page(query, 1_000).records).collect();
        let due = block_on(writer.store.due(None, at(i64::from(i32::MAX)), 1_000)).expect("due records can be read");
        let output = block_on(writer.store.read(run_id(1, 1), 0, 100)).expect("it can be read").bytes;
        Self { records: writer.load_all(keys), lists, due, output }
    }
}

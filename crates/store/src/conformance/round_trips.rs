//! Cases about content: a store returns records exactly as they were written.

use std::collections::BTreeSet;
use std::sync::Arc;

use cronhold_core::State;
use cronhold_core::record::{Record, RecordKey};

use super::Subject;
use super::rich_jobs::{jobs, long_job};
use super::rich_records::{nodes, records};
use super::samples::{cursor, each_kind, identity, job, job_state, run_id, run_in, skip_span};
use super::test_writer::TestWriter;
use crate::{Query, RunQuery};

/// Length of a long text in bytes.
const LONG: usize = 1_000_000;

/// Every field of every kind of record is returned as it was written.
pub fn records_are_returned_as_written(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    for record in records() {
        writer.put(&record);
        assert_eq!(writer.record(&record.key()).as_ref(), Some(&record));
    }
}

/// A job is returned with every field that it can have.
pub fn jobs_are_returned_as_written(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    for job in jobs().into_iter().map(Arc::new) {
        let Some(Record::Job(found)) = scribe_put(&mut writer, Record::Job(Arc::clone(&job))) else {
            panic!("{} is not there as a job", job.id);
        };
        assert_eq!(found, job);
        assert!(found.schedules().map(|(id, _)| id).eq(job.schedules().map(|(id, _)| id)), "{}: its schedules", job.id);
    }
}

/// A node is returned as it was written.
pub fn nodes_are_returned_as_written(subject: &dyn Subject) {
    let writer = TestWriter::of(subject);
    for node in nodes() {
        assert_eq!(writer.beat(&node, &[]), []);
        let key = RecordKey::Node(node.id);
        assert_eq!(writer.record(&key), Some(Record::Node(Arc::new(node.clone()))));
        let mut later = node.clone();
        (later.incarnation, later.draining) = (later.incarnation.wrapping_add(1), !later.draining);
        later.labels = BTreeSet::from(["other".to_owned()]);
        writer.beat(&later, &[]);
        assert_eq!(writer.record(&key), Some(Record::Node(Arc::new(later))), "the latest beat counts");
    }
}

/// A span of skips is not loaded as a run, and a run is not loaded as a span, although lists contain both.
pub fn runs_and_spans_are_different_records(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let (run, span) = (run_id(1, 1), run_id(1, 2));
    let records = [run_in(run, "a", State::Skipped, None), Record::SkipSpan(Arc::new(skip_span(span, "a", 3)))];
    writer.put_all(&records);
    assert_eq!(writer.record(&RecordKey::Run(run)).as_ref(), Some(&records[0]));
    assert_eq!(writer.record(&RecordKey::SkipSpan(span)).as_ref(), Some(&records[1]));
    assert_eq!(writer.record(&RecordKey::SkipSpan(run)), None, "a run is not a span");
    assert_eq!(writer.record(&RecordKey::Run(span)), None, "a span is not a run");
    let found = writer.page(&Query::Runs(RunQuery::default()), 10).records;
    assert!(found.into_iter().map(|stored| stored.record).eq(records.into_iter().rev()));
    writer.delete(&RecordKey::SkipSpan(span));
    assert_eq!(writer.page(&Query::Runs(RunQuery::default()), 10).records.len(), 1, "only the run is left");
}

/// Overwriting a record removes all of its previous content.
pub fn overwriting_removes_previous_content(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    for full in records() {
        let key = full.key();
        let plain = match &full {
            Record::Run(run) => {
                let plain = super::samples::run(run.id, "plain");
                Record::Run(Arc::new(plain))
            }
            Record::SkipSpan(span) => Record::SkipSpan(Arc::new(skip_span(span.id, "plain", 1))),
            Record::Cursor(full) => cursor(full.job.as_str(), full.schedule.as_str(), None),
            Record::JobState(state) => job_state(state.job.as_str(), 1),
            Record::Pause(_) => Record::Pause(Arc::default()),
            _ => continue,
        };
        assert_eq!(plain.key(), key, "the same record in another form");
        for record in [&full, &plain, &full, &plain] {
            writer.put(record);
            assert_eq!(writer.record(&key).as_ref(), Some(record));
        }
    }
}

/// Similar keys identify different records.
pub fn similar_keys_are_different_records(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let names = ["a", "A", "ä", "a\u{308}", "a/b", "a b", "a_", "a%", "a'", "a\\", "1", "01"];
    let mut all: Vec<Record> = each_kind().into_iter().map(|(record, _)| record).collect();
    for name in names {
        all.extend([job(name, name), job_state(name, 3), cursor(name, "s", None), cursor("c", name, None)]);
        all.push(identity(name, &[]));
        all.push(identity("i", &[(name, "")]));
        all.push(identity("i", &[("", name)]));
    }
    // The same texts, split differently.
    all.extend([
        cursor("x", "y/z", None),
        cursor("x/y", "z", None),
        cursor("x", "y z", None),
        cursor("x y", "z", None),
    ]);
    all.extend([identity("i", &[("n", "1"), ("m", "2")]), identity("i", &[("n", "1 m=2")])]);
    all.extend([identity("i", &[("n", "1\",\"m\":\"2")]), identity("i", &[("n", "1,m:2")])]);
    all.dedup_by_key(|record| record.key());
    let mut versions = BTreeSet::new();
    for record in &all {
        let version = writer.version(&record.key());
        if version.is_none() {
            versions.insert(writer.put(record));
        }
    }
    let keys: BTreeSet<RecordKey> = all.iter().map(Record::key).collect();
    assert_eq!(versions.len(), keys.len(), "each has its own place");
    for key in &keys {
        let stored = writer.load(key).expect("it was written");
        assert_eq!(&stored.record.key(), key);
        assert!(versions.remove(&stored.version), "{key} is as it was first written");
    }
}

/// A record can be as large as a job file.
pub fn record_can_be_large(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    // A store with a limit gets a record that is nearly as large as it allows.
    let most = writer.store.limits().record.and_then(|most| usize::try_from(most).ok());
    let length = most.map_or(LONG, |most| LONG.min(most / 10 * 9));
    let record = Record::Job(Arc::new(long_job(length)));
    let found = scribe_put(&mut writer, record.clone());
    assert!(found == Some(record), "a description of {length} bytes is returned");
}

fn scribe_put(writer: &mut TestWriter, record: Record) -> Option<Record> {
    let key = record.key();
    writer.put(&record);
    drop(record);
    writer.record(&key)
}

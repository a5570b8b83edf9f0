//! Cases about lists by key: every record once, in order, for any page size and any changes between two pages.

use std::sync::Arc;

use cronhold_core::record::{Record, RecordKey, StoredRecord};

use super::Subject;
use super::samples::{
    action, at, backlog, cursor, each_kind, identity, job, job_id, job_state, node, pool, run_id, triggers,
};
use super::test_writer::TestWriter;
use crate::{DefinitionPage, Query, StoredDefinition};

/// Lists have few records here, so this many pages indicate an endless loop.
pub(super) const PAGES_MAX: usize = 1_000;

type PageStart = fn(Option<RecordKey>) -> Query;

type NamedRecord = fn(&str) -> Record;

type ScheduleRecord = fn(&str, &str) -> Record;

/// Queries for the kinds that units write, with a function that creates a record of each.
const LISTS: [(PageStart, NamedRecord); 6] = [
    (jobs, |name| job(name, name)),
    (job_states, |name| job_state(name, 3)),
    (cursors, |name| cursor(name, "s", Some(at(1)))),
    (backlogs, |name| backlog(name, "s", at(1))),
    (pools, |name| pool(name, 2)),
    (pending_triggers, |name| triggers(name, Some(at(1)))),
];

/// Names in byte order.
const NAMES: [&str; 12] = ["A", "B", "a", "a b", "a-b", "a/b", "a0", "aa", "b", "b/a/c", "ä", "日本"];

/// Lists are ordered by key, for any page size.
pub fn lists_are_ordered_by_key(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    for (query, record) in LISTS {
        assert_eq!(writer.page(&query(None), 10).records, [], "{:?} is empty", query(None));
        // Records are written in a different order.
        let expected: Vec<Record> = NAMES.map(record).into_iter().collect();
        let shuffled: Vec<Record> = (0..NAMES.len()).map(|index| expected[index * 5 % NAMES.len()].clone()).collect();
        let version = writer.put_all(&shuffled);
        for limit in [1, 2, 5, NAMES.len() - 1, NAMES.len(), NAMES.len() + 1, 1_000] {
            let found = walk(&mut writer, query, limit, |_| {});
            assert!(found.iter().all(|stored| stored.version == version), "records have their versions");
            let found: Vec<Record> = found.into_iter().map(|stored| stored.record).collect();
            assert_eq!(found, expected, "{limit} at a time");
        }
        assert_eq!(writer.page(&query(None), 0).records, []);
        // A page can begin after a key that does not exist.
        let found = writer.page(&query(Some(record("a.").key())), 1).records;
        assert_eq!(found[0].record, record("a/b"));
        assert_eq!(writer.page(&query(Some(record("語").key())), 5).records, [], "after the last one");
    }
}

/// Cursors and backlogs of one job are ordered by schedule.
pub fn schedules_of_a_job_are_ordered(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let lists: [(PageStart, ScheduleRecord); 2] = [
        (cursors, |job, schedule| cursor(job, schedule, None)),
        (backlogs, |job, schedule| backlog(job, schedule, at(1))),
    ];
    for (query, record) in lists {
        let mut expected = Vec::new();
        for job in ["a", "a/b", "b"] {
            expected.extend(NAMES.map(|schedule| record(job, schedule)));
        }
        let shuffled: Vec<Record> = (0..expected.len()).map(|index| expected[index * 7 % 36].clone()).collect();
        writer.put_all(&shuffled);
        for limit in [1, 5, 100] {
            let found = walk(&mut writer, query, limit, |_| {}).into_iter().map(|stored| stored.record);
            assert!(found.eq(expected.iter().cloned()), "{limit} at a time");
        }
    }
}

/// Definitions list every job once, in order, with what the store has of it.
pub fn definitions_list_all_jobs(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    assert_eq!(writer.definitions(None, 9), DefinitionPage::default());
    let shuffled = [7, 2, 11, 0, 5, 9, 1, 10, 3, 8, 6, 4].map(|index: usize| job(NAMES[index], NAMES[index]));
    writer.put_all(&shuffled);
    for limit in [1, 5, NAMES.len(), 100] {
        let (mut found, mut after) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let page = writer.definitions(after.as_ref(), limit);
            assert!(page.jobs.len() <= limit);
            found.extend(page.jobs);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found.len(), NAMES.len(), "{limit} at a time");
        for (found, name) in found.iter().zip(NAMES) {
            let Record::Job(expected) = job(name, name) else { panic!("it is a job") };
            assert_eq!((&found.id, &found.source, &*found.zone), (&expected.id, &expected.source, "UTC"));
            match &found.definition {
                StoredDefinition::Job(job) => assert_eq!(*job, expected.job),
                StoredDefinition::Json(json) => {
                    assert!(json.contains(&format!("\"description\":\"{name}\"")), "{json}");
                }
            }
        }
    }
}

/// Nodes are ordered by id.
pub fn nodes_are_ordered_by_id(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    assert_eq!(writer.page(&nodes(None), 9).records, []);
    let all = [1, 2, 0x10, u128::from(u64::MAX), 1 << 127, u128::MAX].map(|bits| node(bits, "n"));
    for index in [3, 0, 5, 4, 1, 2, 3] {
        writer.beat(&all[index], &[]);
    }
    for limit in [1, 4, 6, 7] {
        let found = walk(&mut writer, nodes, limit, |_| {}).into_iter().map(|stored| stored.record);
        assert!(found.eq(all.iter().map(|node| Record::Node(Arc::new(node.clone())))), "{limit} at a time");
    }
}

/// Lists contain only records of their kind, without deleted ones.
pub fn lists_hold_one_kind(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let all: Vec<Record> = each_kind().into_iter().map(|(record, _)| record).collect();
    writer.put_all(&all);
    writer.beat(&node(1, "n"), &[]);
    let queries = [jobs, job_states, cursors, backlogs, pending_actions, pending_triggers, pools, nodes];
    for query in queries {
        let found = writer.page(&query(None), 100).records;
        assert_eq!(found.len(), 1, "{:?}", query(None));
    }
    for record in &all {
        writer.delete(&record.key());
    }
    let lengths = queries.map(|query| writer.page(&query(None), 100).records.len());
    assert_eq!(lengths, [0, 0, 0, 0, 0, 0, 0, 1], "only the node is left");
}

/// Identities are listed once each, for any page size. Those of one job are in an order of the store's own.
pub fn identities_are_listed_once(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let values = ["", "1", "2", "größe", "\"", "\0"];
    let mut all: Vec<Record> = Vec::new();
    for name in ["a", "a/b", "b"] {
        all.push(identity(name, &[]));
        all.extend(values.map(|value| identity(name, &[("x", value), ("y", "1")])));
    }
    writer.put_all(&all);
    let mut expected: Vec<RecordKey> = all.iter().map(Record::key).collect();
    expected.sort();
    for limit in [1, 4, all.len(), 100] {
        let found = walk(&mut writer, identities, limit, |_| {});
        let mut found: Vec<RecordKey> = found.iter().map(|stored| stored.record.key()).collect();
        found.sort();
        assert_eq!(found, expected, "{limit} at a time");
    }
    for name in ["a", "a/b", "b", "c"] {
        let of_job = Query::IdentitiesOf { job: job_id(name) };
        let mut found: Vec<RecordKey> =
            writer.page(&of_job, 100).records.iter().map(|stored| stored.record.key()).collect();
        found.sort();
        let is_own = |key: &&RecordKey| key.job() == Some(&job_id(name));
        assert_eq!(found, expected.iter().filter(is_own).cloned().collect::<Vec<_>>(), "{name}");
        assert_eq!(writer.page(&of_job, 2).records.len(), found.len().min(2), "{name}");
    }
    for key in &expected {
        writer.delete(key);
    }
    assert_eq!(writer.page(&identities(None), 10).records, []);
}

/// Pending actions are ordered by run and number. One that is done is not listed, and one that is restored is again.
pub fn pending_actions_are_listed(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let id =
        |index: usize| (run_id(i64::try_from(index / 4).unwrap_or(0), 1), u32::try_from(index % 4 * 5).unwrap_or(0));
    let record = |index: usize, due| action(id(index).0, id(index).1, due);
    let listed = |writer: &mut TestWriter, limit| -> Vec<Record> {
        walk(writer, pending_actions, limit, |_| {}).into_iter().map(|stored| stored.record).collect()
    };
    let pending: Vec<Record> = (0..20).map(|index| record(index, Some(at(20 - index as i64)))).collect();
    let shuffled: Vec<Record> = (0..20).map(|index| pending[index * 7 % 20].clone()).collect();
    writer.put_all(&shuffled);
    for limit in [1, 3, 20, 21] {
        assert_eq!(listed(&mut writer, limit), pending, "{limit} at a time");
    }
    let done: Vec<Record> = (0..20).step_by(2).map(|index| record(index, None)).collect();
    writer.put_all(&done);
    writer.delete(&pending[19].key());
    let left: Vec<Record> = (1..19).step_by(2).map(|index| pending[index].clone()).collect();
    assert_eq!(listed(&mut writer, 4), left);
    writer.put(&pending[0]);
    assert_eq!(listed(&mut writer, 100)[0], pending[0]);
    writer.put(&record(1, Some(at(99))));
    assert_eq!(listed(&mut writer, 100)[1], record(1, Some(at(99))));
}

/// Sets of triggers are listed as long as triggers are pending, ordered by job.
pub fn sets_with_pending_triggers_are_listed(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let listed = |writer: &mut TestWriter| -> Vec<Record> {
        walk(writer, pending_triggers, 2, |_| {}).into_iter().map(|stored| stored.record).collect()
    };
    let pending: Vec<Record> = ["a", "b", "c", "d", "e"].map(|job| triggers(job, Some(at(1)))).into();
    writer.put_all(&[&pending[..], &[triggers("aa", None)]].concat());
    assert_eq!(listed(&mut writer), pending);
    writer.put_all(&[triggers("a", None), triggers("d", None)]);
    writer.delete(&pending[2].key());
    assert_eq!(listed(&mut writer), [pending[1].clone(), pending[4].clone()]);
    // Another due time does not change the place.
    writer.put_all(&[pending[0].clone(), triggers("b", Some(at(99)))]);
    assert_eq!(listed(&mut writer), [pending[0].clone(), triggers("b", Some(at(99))), pending[4].clone()]);
}

/// Records that exist all the time are returned once, whatever is written, changed and deleted between two pages.
pub fn pages_are_stable_under_writes(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    for (query, record) in LISTS {
        let name = |number: usize| format!("job {number:03}");
        // Records with odd numbers are added and deleted; the others stay.
        let staying: Vec<usize> = (0..120).step_by(2).collect();
        let all: Vec<Record> = (0..120).filter(|number| number % 4 != 3).map(|number| record(&name(number))).collect();
        writer.put_all(&all);
        let mut round = 0;
        let found = walk(&mut writer, query, 7, |writer| {
            for number in [round * 4 + 1, 117 - round * 4] {
                writer.delete(&record(&name(number)).key());
            }
            for number in [round * 4 + 3, 119 - round * 4] {
                writer.put(&record(&name(number)));
            }
            // Change records that were already returned and records that were not.
            writer.put_all(&[record(&name(0)), record(&name(60)), record(&name(118))]);
            round += 1;
        });
        assert!(round >= 8, "there were pages in between: {round}");
        let keys: Vec<RecordKey> = found.iter().map(|stored| stored.record.key()).collect();
        assert!(keys.is_sorted_by(|one, next| one < next), "each once and in order");
        for number in staying {
            assert!(keys.contains(&record(&name(number)).key()), "{} was there all the time", name(number));
        }
        // The first round deleted 117 and wrote 119 long before the pages reached them.
        let is_found = |number: usize| keys.contains(&record(&name(number)).key());
        assert!(!is_found(117) && is_found(119), "a page shows the current records");
    }
}

fn jobs(after: Option<RecordKey>) -> Query {
    let after = after.map(|key| match key {
        RecordKey::Job(job) => job,
        other => panic!("a page of jobs ends with a job, and not with {other}"),
    });
    Query::Jobs { after }
}

fn job_states(after: Option<RecordKey>) -> Query {
    let after = after.map(|key| match key {
        RecordKey::JobState(job) => job,
        other => panic!("a page of sets of runs ends with one, and not with {other}"),
    });
    Query::JobStates { after }
}

fn cursors(after: Option<RecordKey>) -> Query {
    let after = after.map(|key| match key {
        RecordKey::Cursor(job, schedule) => (job, schedule),
        other => panic!("a page of cursors ends with a cursor, and not with {other}"),
    });
    Query::Cursors { after }
}

fn backlogs(after: Option<RecordKey>) -> Query {
    let after = after.map(|key| match key {
        RecordKey::Backlog(job, schedule) => (job, schedule),
        other => panic!("a page of backlogs ends with a backlog, and not with {other}"),
    });
    Query::Backlogs { after }
}

fn identities(after: Option<RecordKey>) -> Query {
    let after = after.map(|key| match key {
        RecordKey::Identity(job, args) => (job, args),
        other => panic!("a page of identities ends with an identity, and not with {other}"),
    });
    Query::Identities { after }
}

fn nodes(after: Option<RecordKey>) -> Query {
    let after = after.map(|key| match key {
        RecordKey::Node(node) => node,
        other => panic!("a page of nodes ends with a node, and not with {other}"),
    });
    Query::Nodes { after }
}

fn pending_actions(after: Option<RecordKey>) -> Query {
    let after = after.map(|key| match key {
        RecordKey::Action(action) => action,
        other => panic!("a page of actions ends with an action, and not with {other}"),
    });
    Query::PendingActions { after }
}

fn pools(after: Option<RecordKey>) -> Query {
    let after = after.map(|key| match key {
        RecordKey::Pool(pool) => pool,
        other => panic!("a page of pools ends with a pool, and not with {other}"),
    });
    Query::Pools { after }
}

fn pending_triggers(after: Option<RecordKey>) -> Query {
    let after = after.map(|key| match key {
        RecordKey::Triggers(job) => job,
        other => panic!("a page of triggers ends with triggers, and not with {other}"),
    });
    Query::PendingTriggers { after }
}

/// Collects all pages of a list, and runs `between` after each.
pub(super) fn walk(
    writer: &mut TestWriter,
    query: impl Fn(Option<RecordKey>) -> Query,
    limit: usize,
    mut between: impl FnMut(&mut TestWriter),
) -> Vec<StoredRecord> {
    let mut found: Vec<StoredRecord> = Vec::new();
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let page = writer.page(&query(after), limit);
        assert!(page.records.len() <= limit, "{} are more than {limit}", page.records.len());
        let is_last = page.records.len() < limit;
        after = page.next(limit);
        found.extend(page.records);
        if is_last {
            return found;
        }
        between(writer);
    }
    panic!("a list has an end, and not more than {PAGES_MAX} pages");
}

//! Texts of records: the layout that stores and their scripts rely on, and what cannot be decoded.

use std::sync::Arc;

use cronhold_core::record::{
    ActionId, Backlog, ClaimedRanges, Cursor, Identity, JobState, NodeRecord, PauseState, Pool, PoolName, Record,
    RecordKey, RecordVersion, Run, RunOwner, ScheduleId, TriggerSet,
};
use cronhold_core::{Args, JobId, JobUid, NodeId, RunId, RunNumber, State};
use cronhold_schedule::{Instant, ZoneRegistry};

use super::*;

const SOME_VERSION: RecordVersion = RecordVersion::new(3, 5);

fn at(secs: i64) -> Instant {
    Instant::from_secs(1_800_000_000 + secs)
}

fn job() -> JobId {
    JobId::parse("a").expect("an id")
}

fn schedule() -> ScheduleId {
    ScheduleId::parse("s").expect("an id")
}

fn run_id() -> RunId {
    RunId::from_random(at(0), [7; 10])
}

fn cursor() -> Cursor {
    Cursor {
        job: job(),
        schedule: schedule(),
        since: at(0),
        last: Some(at(60)),
        next: Some(at(120)),
        wake: Some(at(120)),
        revision: 1,
        zones: "2026a".into(),
        generation: 0,
        follows: None,
        at_start: false,
        streak: None,
        claimed: ClaimedRanges::default(),
    }
}

fn run() -> Run {
    let owner = Some(RunOwner { node: NodeId::from_bits(0xabc), incarnation: 2 });
    let blank = Run::blank(run_id(), RunNumber(9), job(), JobUid::from_bits(7), at(0));
    Run { state: State::Running, owner, due: Some(at(5)), ..blank }
}

fn records() -> Vec<Record> {
    let backlog = Backlog {
        job: job(),
        schedule: schedule(),
        from: at(0),
        position: at(1),
        to: at(2),
        count: 3,
        due: at(3),
        later: Vec::new(),
    };
    let node = NodeRecord { beat: at(1), gone: at(7), ..NodeRecord::new(NodeId::from_bits(5), "five", 3, at(0)) };
    let args: Args = [("n".to_owned(), "1".to_owned())].into_iter().collect();
    vec![
        Record::Pause(Arc::new(PauseState { current: None, last: None })),
        Record::JobState(Arc::new(JobState::new(job()))),
        Record::Cursor(Arc::new(cursor())),
        Record::Backlog(Arc::new(backlog)),
        Record::Identity(Arc::new(Identity::new(job(), args))),
        Record::Run(Arc::new(run())),
        Record::Node(Arc::new(node)),
        Record::Pool(Arc::new(Pool { name: PoolName::parse("db").expect("a name"), active: Vec::new() })),
        Record::Triggers(Arc::new(TriggerSet::new(job()))),
    ]
}

#[test]
fn texts_are_read_back_with_version_and_seq() {
    for record in records() {
        let text = encode_record(SOME_VERSION, 77, &record);
        assert_eq!(version_and_seq(&text), Some((SOME_VERSION, 77)), "{record:?}");
        assert_eq!(text[BODY..], encode_body(&record)[..], "{record:?}");
        let stored = decode_record(record.key(), &text, &ZoneRegistry::bundled());
        assert_eq!(stored, Ok(StoredRecord { version: SOME_VERSION, record }));
    }
}

#[test]
fn first_line_has_fields_at_fixed_positions() {
    let line = |record: &Record| {
        let text = String::from_utf8(encode_body(record)).expect("a text");
        text.split_once('\n').expect("two lines").0.to_owned()
    };
    let cursor = line(&Record::Cursor(Arc::new(cursor())));
    assert_eq!(cursor, format!("{} {}", moment_text(at(120)), moment_text(at(60))));
    let run = line(&Record::Run(Arc::new(run())));
    assert_eq!(run, format!("{} 3 {:032x} {:016x} a", moment_text(at(5)), 0xabc, 9));
    let state = line(&Record::JobState(Arc::new(JobState::new(job()))));
    assert_eq!(state, "-".repeat(16));
}

#[test]
fn malformed_texts_are_unreadable_and_have_no_version() {
    let key = RecordKey::JobState(job());
    let text = encode_record(SOME_VERSION, 1, &Record::JobState(Arc::new(JobState::new(job()))));
    let damaged = [text.as_slice(), b"{\xff"].concat();
    assert!(decode_record(key.clone(), &damaged, &ZoneRegistry::bundled()).is_err());
    assert_eq!(stored_version(&damaged), SOME_VERSION, "the version is readable");
    for malformed in [&b""[..], b"short", b"g000000000000001 0000000000000001 x\n{}"] {
        assert!(decode_record(key.clone(), malformed, &ZoneRegistry::bundled()).is_err());
        assert_eq!(stored_version(malformed), NO_VERSION);
    }
    let action = RecordKey::Action(ActionId::new(run_id(), 1));
    assert!(decode_record(action, &text, &ZoneRegistry::bundled()).is_err(), "a text of another kind");
}

//! Cases about records that are stored and cannot be read: they are named, stop nothing else, and can be replaced or
//! deleted by their keys. Stores that cannot have such records pass without doing anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::command::{Command, CommandStamp, Precondition, PrunableRecord};
use cronhold_core::decision::CommandReply;
use cronhold_core::job::{Job, LockPolicy, OverlapPolicy};
use cronhold_core::record::{Actor, JobSource, Record, RecordKey, RecordVersion, RunOwner};
use cronhold_core::{DecisionContext, JobUid, NodeId, RunId, State};
use cronhold_schedule::{Zone, ZoneRegistry};

use super::samples::{at, backlog, cursor, job, job_id, job_state, pause, run, run_id, run_in, schedule_id};
use super::test_writer::TestWriter;
use super::{Subject, block_on};
use crate::{
    CommandOutcome, Fault, Query, StampedCommand, UnitReceipt, UnreadableRecord, WriterSession, expire_outputs,
};

/// Loading an unreadable record fails with its key, and lists of any page size name it and continue after it.
pub fn unreadable_record_is_named_and_stops_no_list(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let names = ["a", "b", "c", "d"];
    writer.put_all(&names.map(|name| job(name, "one of four")));
    for name in ["b", "c"] {
        if !subject.damage(&RecordKey::Job(job_id(name))) {
            return;
        }
    }
    let bad = RecordKey::Job(job_id("b"));
    assert_eq!(unreadable(&writer, &bad).key, Some(bad));
    assert!(writer.record(&RecordKey::Job(job_id("d"))).is_some());
    for limit in 1..=5 {
        let (mut readable, mut named, mut after) = (Vec::new(), Vec::new(), None);
        loop {
            let page = writer.page(&Query::Jobs { after }, limit);
            after = match page.next(limit) {
                Some(RecordKey::Job(last)) => Some(last),
                _ => None,
            };
            readable.extend(page.records.into_iter().map(|stored| stored.record.key()));
            named.extend(page.unreadable.into_iter().filter_map(|record| record.key));
            if after.is_none() {
                break;
            }
        }
        assert_eq!(readable, ["a", "d"].map(|name| RecordKey::Job(job_id(name))), "pages of {limit}");
        assert_eq!(named, ["b", "c"].map(|name| RecordKey::Job(job_id(name))), "pages of {limit}");
    }
}

/// A unit that compares the version of an unreadable record replaces or deletes it.
pub fn unreadable_record_can_be_replaced_and_deleted(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    for record in [
        pause("tea"),
        job("a", "first"),
        job_state("a", 3),
        cursor("a", "s", Some(at(5))),
        backlog("a", "s", at(5)),
        run_in(run_id(1, 1), "a", State::Success, None),
    ] {
        let key = record.key();
        writer.put(&record);
        if !subject.damage(&key) {
            return;
        }
        let found = unreadable(&writer, &key);
        let draft = writer.unit().put(record.clone(), found.version);
        assert_eq!(writer.commit(draft), Ok(UnitReceipt::default()), "{key} can be replaced");
        assert_eq!(writer.record(&key), Some(record), "{key}");
        assert!(subject.damage(&key));
        let found = unreadable(&writer, &key);
        let draft = writer.unit().delete(key.clone(), found.version);
        assert_eq!(writer.commit(draft), Ok(UnitReceipt::default()), "{key} can be deleted");
        assert_eq!(writer.record(&key), None, "{key}");
    }
}

/// Commands remove and replace a job whose records cannot be read, and name the record that any other command needs.
pub fn unreadable_job_can_be_removed_and_replaced_by_command(subject: &dyn Subject) {
    let (a, b) = (job_id("a"), job_id("b"));
    let source = JobSource::Api;
    let put = |name: &str| match job(name, "whole") {
        Record::Job(record) => Command::PutJob {
            id: record.id.clone(),
            job: Arc::clone(&record.job),
            source: JobSource::Api,
            uid: JobUid::from_bits(9),
            provided: Precondition::Any,
        },
        other => panic!("{other:?} is not a job"),
    };
    let mut session = block_on(WriterSession::new(subject.store(), 0)).expect("a session");
    let done = Some(CommandReply::Done);
    assert_eq!(request(&mut session, put("a")), done);
    assert_eq!(request(&mut session, put("b")), done);
    for key in [RecordKey::Job(a.clone()), RecordKey::Job(b.clone())] {
        if !subject.damage(&key) {
            return;
        }
    }
    let mut session = block_on(WriterSession::new(subject.store(), 0)).expect("a session");
    let pause = |job| Command::Pause { job: Some(job), why: String::new(), until: None };
    assert_eq!(request(&mut session, pause(a.clone())), None, "what needs the definition fails");
    let remove = |id| Command::RemoveJob { id, source: source.clone(), provided: Precondition::Any };
    assert_eq!(request(&mut session, remove(a.clone())), done);
    assert_eq!(request(&mut session, put("b")), done);
    assert_eq!(request(&mut session, pause(b.clone())), done, "it is a job like any other again");
    assert!(subject.damage(&RecordKey::JobState(b.clone())));
    let mut session = block_on(WriterSession::new(subject.store(), 0)).expect("a session");
    assert_eq!(request(&mut session, Command::Resume { job: Some(b.clone()) }), None);
    assert_eq!(request(&mut session, remove(b.clone())), done);
    assert_eq!(request(&mut session, put("b")), done);
    assert_eq!(request(&mut session, pause(b)), done);
    assert_eq!(request(&mut session, remove(a)), None, "it was removed");
}

/// Commands replace a pause and delete a finished run that cannot be read.
pub fn unreadable_pause_and_run_can_be_replaced_by_command(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let run = run_id(1, 1);
    writer.put_all(&[pause("tea"), run_in(run, "a", State::Success, None), job_state("a", 2)]);
    for key in [RecordKey::Pause, RecordKey::Run(run)] {
        if !subject.damage(&key) {
            return;
        }
    }
    let mut session = block_on(WriterSession::new(subject.store(), 0)).expect("a session");
    let done = Some(CommandReply::Done);
    assert_eq!(request(&mut session, Command::Resume { job: None }), done);
    assert!(writer.record(&RecordKey::Pause).is_some());
    assert!(subject.damage(&RecordKey::Pause));
    let mut session = block_on(WriterSession::new(subject.store(), 0)).expect("a session");
    assert_eq!(request(&mut session, Command::Pause { job: None, why: "lunch".to_owned(), until: None }), done);
    let listed = writer.page(&Query::Oldest { job: job_id("a"), state: State::Success, after: None }, 10).unreadable;
    let version = listed[0].version.expect("its version can be read");
    let prune = |version| {
        let records = vec![PrunableRecord::unreadable(run, version, State::Success)];
        Command::Prune { job: job_id("a"), records }
    };
    let other = RecordVersion::new(1, 1_000);
    assert_eq!(request(&mut session, prune(other)), Some(CommandReply::Unchanged), "only what has not changed");
    let mut session = block_on(WriterSession::new(subject.store(), 0)).expect("a session");
    assert_eq!(request(&mut session, prune(version)), done);
    assert_eq!(writer.record(&RecordKey::Run(run)), None);
}

/// A command ends an unfinished run that cannot be read: its place among the active runs and its lock become free.
pub fn unreadable_active_run_can_be_ended_by_command(subject: &dyn Subject) {
    let (a, lost) = (job_id("a"), run_id(1, 1));
    let Record::Job(record) = job("a", "") else { panic!("a job is a job") };
    let definition = Job { lock: LockPolicy::Job, overlap: OverlapPolicy::Skip, ..(*record.job).clone() };
    let put = Command::PutJob {
        id: a.clone(),
        job: Arc::new(definition),
        source: JobSource::Api,
        uid: JobUid::from_bits(9),
        provided: Precondition::Any,
    };
    let mut session = block_on(WriterSession::new(subject.store(), 0)).expect("a session");
    assert_eq!(request(&mut session, put), Some(CommandReply::Done));
    let start = |session: &mut WriterSession, id| {
        let command = Command::Run { job: a.clone(), args: BTreeMap::new(), id, at: None, stop: None };
        assert!(request(session, command).is_some());
    };
    start(&mut session, lost);
    if !subject.damage(&RecordKey::Run(lost)) {
        return;
    }
    let mut session = block_on(WriterSession::new(subject.store(), 0)).expect("a session");
    let writer = TestWriter::of(subject);
    let state_of = |id| match writer.record(&RecordKey::Run(id)) {
        Some(Record::Run(run)) => run.state,
        other => panic!("{other:?} is not a run"),
    };
    start(&mut session, run_id(2, 1));
    assert_eq!(state_of(run_id(2, 1)), State::Skipped, "the run that cannot be read is active");
    let end = |run, state| Command::EndUnreadable { job: job_id("a"), run, state, why: "lost".to_owned() };
    assert_eq!(request(&mut session, end(run_id(3, 1), State::Error)), None, "there is no such run");
    assert_eq!(request(&mut session, end(lost, State::Running)), None, "this is not a finished state");
    assert_eq!(request(&mut session, end(lost, State::Failure)), Some(CommandReply::Done));
    assert_eq!(state_of(lost), State::Failure);
    let unfinished = writer.page(&Query::Unfinished { node: None, after: None }, 10);
    assert!(unfinished.is_empty(), "{unfinished:?}");
    let failures = Query::Oldest { job: job_id("a"), state: State::Failure, after: None };
    assert_eq!(writer.page(&failures, 10).len(), 1);
    start(&mut session, run_id(4, 1));
    assert_eq!(state_of(run_id(4, 1)), State::Starting, "its place and its lock are free");
    assert_eq!(request(&mut session, end(lost, State::Error)), Some(CommandReply::Done), "it is a run like any other");
}

/// The walk through outputs goes past unreadable runs and jobs, and keeps their outputs.
pub fn unreadable_records_do_not_stop_expiry(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    writer.put_all(&["bad", "good"].map(|name| job(name, "")));
    let runs = [("good", run_id(1, 1)), ("good", run_id(1, 2)), ("bad", run_id(1, 3)), ("good", run_id(1, 4))];
    for (job, id) in runs {
        let mut ended = run(id, job);
        (ended.state, ended.log[0].state) = (State::Success, State::Success);
        writer.put(&Record::Run(Arc::new(ended)));
        assert_eq!(block_on(writer.store.append(id, 0, b"x")), Ok(1));
    }
    let damaged = [RecordKey::Run(runs[0].1), RecordKey::Job(job_id("bad"))];
    for key in &damaged {
        if !subject.damage(key) {
            return;
        }
    }
    let step = block_on(expire_outputs(&*writer.store, None, at(400 * 86_400))).expect("it goes past them");
    assert_eq!(step.unreadable.into_iter().filter_map(|record| record.key).collect::<Vec<_>>(), damaged);
    let left = block_on(writer.store.outputs(None, 10)).expect("a list");
    assert_eq!(left, [runs[0].1, runs[2].1]);
}

/// Every character that a text can have is returned as it was written, in jobs and in other records.
pub fn every_character_is_returned_as_written(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let all: Vec<char> = ('\0'..=char::MAX).collect();
    // The first characters are the ones with a meaning; the others come in larger parts.
    let (first, rest) = all.split_at(0x3000);
    for part in first.chunks(0x100).chain(rest.chunks(0x4000)) {
        let text: String = part.iter().collect();
        let records = [job("a", &text), pause(&text), with_texts(run_id(1, 1), &text)];
        writer.put_all(&records);
        for record in &records {
            let found = writer.record(&record.key());
            assert!(found.as_ref() == Some(record), "{} with {:x?}", record.key(), part.first());
        }
    }
}

/// A run with a text wherever it can have one.
fn with_texts(id: RunId, text: &str) -> Record {
    let Record::Run(run) = run_in(id, "a", State::Waiting, None) else { panic!("a run is a run") };
    let mut run = (*run).clone();
    run.args = [("x".to_owned(), text.to_owned())].into_iter().collect();
    run.reason = Some(cronhold_core::run::Reason::Said(text.to_owned()));
    run.log[0].actor = Actor::Operator(text.to_owned());
    run.log[0].message = text.to_owned();
    run.schedule = Some(schedule_id("s"));
    Record::Run(Arc::new(run))
}

/// The record of a key, which must be unreadable.
fn unreadable(writer: &TestWriter, key: &RecordKey) -> UnreadableRecord {
    match block_on(writer.store.load(std::slice::from_ref(key))) {
        Err(Fault::Unreadable(record)) => *record,
        other => panic!("{key} is not unreadable: {other:?}"),
    }
}

/// The reply to a command; `None` if it was rejected or needs an unreadable record.
fn request(session: &mut WriterSession, command: Command) -> Option<CommandReply> {
    let world = DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "2026a".into(), Zone::utc());
    let owner = RunOwner { node: NodeId::from_bits(1), incarnation: session.writer() };
    let stamp = CommandStamp { at: at(9), actor: Actor::Operator("anna".to_owned()), owner };
    match block_on(session.turn(&world, &[StampedCommand { stamp, command }])).pop() {
        Some(CommandOutcome::Done { done, .. }) => Some(done.answer),
        Some(CommandOutcome::Rejected(_) | CommandOutcome::Unreadable(_)) => None,
        other => panic!("the store failed: {other:?}"),
    }
}

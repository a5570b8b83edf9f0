//! Cases about limits: what exceeds a limit of the store is refused or deleted in time. A store without limits keeps all of
//! it.

use std::sync::Arc;

use cronhold_core::command::{Command, CommandStamp, Precondition};
use cronhold_core::decision::Rejection;
use cronhold_core::job::{Job, Program};
use cronhold_core::record::{Actor, JobSource, Record, RecordKey, RunOwner};
use cronhold_core::{DecisionContext, JobUid, NodeId, RunId, State};
use cronhold_schedule::{Span, Zone, ZoneRegistry};

use super::samples::{at, job, job_id, job_state, run_id, run_in};
use super::test_writer::TestWriter;
use super::{Subject, block_on};
use crate::{CommandOutcome, Fault, StampedCommand, UnitReceipt, UnitRefusal, WriterSession, trim_outputs};

/// Bytes of a definition that a store without limits must keep.
const LONG: u64 = 1_000_000;

/// A definition that is too large for the store is rejected when it is put, and the job keeps its last one.
pub fn definition_above_the_limit_is_rejected(subject: &dyn Subject) {
    let mut session = block_on(WriterSession::new(subject.store(), 0)).expect("a session");
    let most = session.store().limits().record;
    let world = DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "test".into(), Zone::utc());
    let mut put = |length: u64| {
        let mut job = Job::new(Program::Noop { duration: Span::ZERO });
        job.description = "x".repeat(usize::try_from(length).expect("it fits"));
        let owner = RunOwner { node: NodeId::from_bits(1), incarnation: 1 };
        let stamp = CommandStamp { at: at(0), actor: Actor::Operator("anna".to_owned()), owner };
        let command = Command::PutJob {
            id: job_id("a"),
            job: Arc::new(job),
            source: JobSource::Api,
            uid: JobUid::from_bits(7),
            provided: Precondition::Any,
        };
        block_on(session.turn(&world, &[StampedCommand { stamp, command }])).pop().expect("one outcome")
    };
    assert!(matches!(put(10), CommandOutcome::Done { .. }));
    let outcome = put(most.unwrap_or(LONG));
    match most {
        None => assert!(matches!(outcome, CommandOutcome::Done { .. }), "{outcome:?}"),
        Some(most) => {
            let CommandOutcome::Rejected(Rejection::JobTooLarge { job, size, limit }) = outcome else {
                panic!("{outcome:?}")
            };
            assert_eq!((job, limit), (job_id("a"), most));
            assert!(size > most, "{size} is the size of the record");
            let stored = TestWriter::of(subject).record(&RecordKey::Job(job_id("a")));
            assert!(matches!(stored, Some(Record::Job(job)) if job.job.description.len() == 10));
        }
    }
}

/// A unit with a record that is too large, or with too much in all, is refused permanently and alone.
pub fn unit_above_a_limit_fails_alone(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let limits = writer.store.limits();
    let length = |most: u64| usize::try_from(most).expect("it fits");
    let mut drafts = vec![writer.unit().put(job_state("a", 1), None)];
    let mut is_refused = vec![false];
    if let Some(most) = limits.record {
        drafts.push(writer.unit().put(job("large", &"x".repeat(length(most))), None));
        is_refused.push(true);
    }
    if let Some(most) = limits.unit {
        let part = "x".repeat(length(limits.record.unwrap_or(most).min(most) / 2));
        let count = length(most) / part.len() + 1;
        let records = (0..count).map(|number| job(&format!("part {number}"), &part));
        drafts.push(records.fold(writer.unit(), |draft, record| draft.put(record, None)));
        is_refused.push(true);
    }
    drafts.push(writer.unit().put(job_state("b", 1), None));
    is_refused.push(false);
    let results = writer.commit_all(drafts);
    for (result, is_refused) in results.iter().zip(is_refused) {
        match is_refused {
            true => assert!(matches!(result, Err(UnitRefusal::Fault(Fault::Permanent(_)))), "{result:?}"),
            false => assert_eq!(*result, Ok(UnitReceipt::default())),
        }
    }
}

/// If the store keeps a limited number of outputs, the oldest ones of finished runs are deleted beyond it.
pub fn oldest_outputs_are_deleted_beyond_a_number(subject: &dyn Subject) {
    let mut writer = TestWriter::of(subject);
    let most = writer.store.limits().outputs.and_then(|most| u16::try_from(most).ok());
    let many = most.unwrap_or(20) + 5;
    let runs: Vec<RunId> = (0..many).map(|number| run_id(i64::from(number / 200), number)).collect();
    for (number, run) in runs.iter().enumerate() {
        let state = if number == 1 { State::Running } else { State::Failure };
        writer.put(&run_in(*run, "a", state, (number == 1).then_some(1)));
        block_on(writer.store.append(*run, 0, b"x")).expect("appended");
    }
    let mut after = None;
    loop {
        after = block_on(trim_outputs(&*writer.store, after, u64::MAX)).expect("a store that works").next;
        if after.is_none() {
            break;
        }
    }
    let mut left = runs;
    if most.is_some() {
        // The output of an unfinished run stays.
        left.drain(2..6);
        left.remove(0);
    }
    assert_eq!(block_on(writer.store.outputs(None, usize::MAX)), Ok(left));
}

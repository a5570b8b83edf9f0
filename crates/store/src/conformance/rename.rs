//! Cases about a job that is renamed: its finished runs and its outcomes move to the new name in several units, and every
//! list has them there.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::command::{Command, CommandStamp, ExitOutcome, Precondition, ProgramReport};
use cronhold_core::decision::CommandReply;
use cronhold_core::job::{Job, OverlapPolicy, Param};
use cronhold_core::record::{Actor, JobSource, Record, RecordKey, RenameProgress, RunOwner};
use cronhold_core::{Args, DecisionContext, JobId, JobUid, NodeId, RunNumber, State};
use cronhold_schedule::{Zone, ZoneRegistry};

use super::samples::{at, job, job_id, run_id};
use super::test_writer::TestWriter;
use super::{Subject, block_on};
use crate::{CommandOutcome, Query, RunQuery, StampedCommand, WriterSession};

/// Finished runs of the job.
const RUNS: u16 = 5;

/// A session that carries out commands as a node does.
struct RenameSession(WriterSession);

impl RenameSession {
    fn new(subject: &dyn Subject) -> Self {
        Self(block_on(WriterSession::new(subject.store(), 0)).expect("a session"))
    }

    /// The reply; `None` if the command was rejected.
    fn request(&mut self, command: Command) -> Option<CommandReply> {
        let world = DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "2026a".into(), Zone::utc());
        let owner = RunOwner { node: NodeId::from_bits(1), incarnation: self.0.writer() };
        let stamp = CommandStamp { at: at(9), actor: Actor::Operator("anna".to_owned()), owner };
        match block_on(self.0.turn(&world, &[StampedCommand { stamp, command }])).pop() {
            Some(CommandOutcome::Done { done, .. }) => Some(done.answer),
            Some(CommandOutcome::Rejected(_)) => None,
            other => panic!("the store failed: {other:?}"),
        }
    }

    /// Puts a job with a param, and runs it with a value for each number: every second run fails.
    fn put_and_run(&mut self, name: &JobId) {
        let Record::Job(record) = job(name.as_str(), "") else { panic!("a job is a job") };
        let params = [("x".to_owned(), Param::default())].into_iter().collect();
        let definition = Job { params, overlap: OverlapPolicy::Allow, schedules: Vec::new(), ..(*record.job).clone() };
        let put = Command::PutJob {
            id: name.clone(),
            job: Arc::new(definition),
            source: JobSource::Api,
            uid: JobUid::from_bits(9),
            provided: Precondition::Any,
        };
        assert_eq!(self.request(put), Some(CommandReply::Done));
        for number in 0..RUNS {
            let (id, args) = (run_id(1, number), BTreeMap::from([("x".to_owned(), number.to_string())]));
            assert!(self.request(Command::Run { job: name.clone(), args, id, at: None, stop: None }).is_some());
            let end = ExitOutcome { success: number % 2 == 0, ..ExitOutcome::SUCCESS };
            let report = Command::Report { run: id, report: ProgramReport::Ended(end) };
            assert_eq!(self.request(report), Some(CommandReply::Done));
        }
    }
}

/// The history of a job as lists have it: the numbers of its runs, its failures, and its outcomes.
fn history(writer: &TestWriter, job: &JobId) -> (Vec<u64>, usize, usize) {
    let query = RunQuery { job: Some(job.clone()), ..RunQuery::default() };
    let runs = writer.page(&Query::Runs(query.clone()), 100).records;
    let numbers = runs.iter().map(|stored| match &stored.record {
        Record::Run(run) => run.number.0,
        other => panic!("{other:?} is not a run"),
    });
    let numbers: Vec<u64> = numbers.collect();
    for number in &numbers {
        let one = RunQuery { number: Some(RunNumber(*number)), ..query.clone() };
        assert_eq!(writer.page(&Query::Runs(one), 10).records.len(), 1, "{job}#{number}");
    }
    let failures = Query::Oldest { job: job.clone(), state: State::Failure, after: None };
    let outcomes = writer.page(&Query::IdentitiesOf { job: job.clone() }, 100).records.len();
    (numbers, writer.page(&failures, 100).records.len(), outcomes)
}

/// The runs and outcomes move in any number of units. After each of them, every list has each run once, and the outcomes
/// of runs that have moved and of those that have not are found.
pub fn renamed_job_takes_its_history_along(subject: &dyn Subject) {
    let (old, new) = (job_id("old/name"), job_id("new"));
    let mut session = RenameSession::new(subject);
    session.put_and_run(&old);
    let writer = TestWriter::of(subject);
    assert_eq!(history(&writer, &old), (vec![5, 4, 3, 2, 1], 2, 5));
    let next_number = u64::from(RUNS) + 1;
    let rename =
        |next_number| Command::RenameJob { from: old.clone(), to: new.clone(), scheduled: Vec::new(), next_number };
    assert_eq!(session.request(rename(1)), None, "runs were created since");
    assert_eq!(session.request(rename(next_number)), Some(CommandReply::Done));
    assert_eq!(writer.record(&RecordKey::Job(old.clone())), None);
    let state = |job: &JobId| match writer.record(&RecordKey::JobState(job.clone())) {
        Some(Record::JobState(state)) => (*state).clone(),
        other => panic!("{other:?} is not the state of {job}"),
    };
    assert_eq!(state(&old).renaming, Some(RenameProgress::To(new.clone())));
    assert_eq!((state(&new).next_number, state(&new).kept.failure), (next_number, 2));

    let outcome = |number: u16| RecordKey::Identity(old.clone(), arg(number));
    let units: [Vec<RecordKey>; 3] = [
        vec![RecordKey::Run(run_id(1, 4)), RecordKey::Run(run_id(1, 1)), outcome(1)],
        vec![RecordKey::Run(run_id(1, 4)), outcome(0), RecordKey::Run(run_id(7, 7))],
        (0..RUNS).map(|number| RecordKey::Run(run_id(1, number))).chain((0..RUNS).map(outcome)).collect(),
    ];
    let moved = [
        ((vec![5, 2], 1, 1), (vec![4, 3, 1], 1, 4)),
        ((vec![5, 2], 1, 2), (vec![4, 3, 1], 1, 3)),
        ((vec![5, 4, 3, 2, 1], 2, 5), (vec![], 0, 0)),
    ];
    for (keys, (of_new, of_old)) in units.into_iter().zip(moved) {
        let command = Command::MoveHistory { to: new.clone(), keys };
        assert_eq!(session.request(command), Some(CommandReply::Done));
        assert_eq!((history(&writer, &new), history(&writer, &old)), (of_new, of_old));
    }
    assert_eq!(session.request(Command::MoveHistory { to: new.clone(), keys: Vec::new() }), Some(CommandReply::Done));
    assert_eq!((state(&new).renaming, state(&old).renaming), (None, None));
    let later = Command::Run {
        job: new.clone(),
        args: BTreeMap::from([("x".to_owned(), "9".to_owned())]),
        id: run_id(2, 1),
        at: None,
        stop: None,
    };
    assert_eq!(session.request(later), Some(CommandReply::Run { id: run_id(2, 1), number: RunNumber(next_number) }));
}

/// The args of a run by its number.
fn arg(number: u16) -> Args {
    let params = [("x".to_owned(), Param::default())].into_iter().collect();
    let given = BTreeMap::from([("x".to_owned(), number.to_string())]);
    Args::bind(&params, &given, &BTreeMap::new()).expect("it has the only param")
}

//! The turn on a store that loses replies, rejects commits, and is changed by other writers in between: each command
//! takes effect once, on the current records.

mod faulty_store;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use cronhold_core::command::{Command, CommandStamp, ExitOutcome, Precondition, ProgramReport};
use cronhold_core::decision::{CommandReply, Rejection};
use cronhold_core::job::{Job, LockPolicy, OverlapPolicy, Program};
use cronhold_core::record::{Actor, JobSource, Record, RecordKey, RunOwner};
use cronhold_core::{DecisionContext, JobId, JobUid, NodeId, RunId, State};
use cronhold_schedule::{Instant, Span, Zone, ZoneRegistry};
use cronhold_store::{CommandOutcome, Fault, MemoryStore, StampedCommand, Store, WriterSession};

use crate::faulty_store::{FaultMode, FaultyStore};

const START: Instant = Instant::from_secs(1_800_000_000);

/// Polls a future that must complete immediately.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store answers at once"),
    }
}

fn world() -> DecisionContext {
    DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "2026e".into(), Zone::utc())
}

fn memory() -> MemoryStore {
    MemoryStore::new(Arc::new(|| START))
}

fn session(store: impl Store + 'static) -> WriterSession {
    now(WriterSession::new(Arc::new(store), 1_000)).expect("a session")
}

fn stamped(command: Command) -> StampedCommand {
    let owner = RunOwner { node: NodeId::from_bits(7), incarnation: 1 };
    StampedCommand { stamp: CommandStamp { at: START, actor: Actor::Operator("anna".to_owned()), owner }, command }
}

fn id(name: &str) -> JobId {
    JobId::parse(name).expect(name)
}

fn put(name: &str, change: impl FnOnce(&mut Job)) -> StampedCommand {
    let mut job = Job::new(Program::Noop { duration: Span::ZERO });
    change(&mut job);
    let (id, job, uid) = (id(name), Arc::new(job), JobUid::from_bits(1));
    stamped(Command::PutJob { id, job, source: JobSource::Api, uid, provided: Precondition::Any })
}

fn run_id(number: u8) -> RunId {
    RunId::from_random(START, [number; 10])
}

fn run(name: &str, number: u8) -> StampedCommand {
    stamped(Command::Run { job: id(name), args: BTreeMap::new(), id: run_id(number), at: None, stop: None })
}

fn state_of(store: &dyn Store, number: u8) -> Option<State> {
    let found = now(store.load(&[RecordKey::Run(run_id(number))])).expect("the memory store works");
    match found.into_iter().next().flatten()?.record {
        Record::Run(run) => Some(run.state),
        other => panic!("{other:?}"),
    }
}

fn numbers(outcomes: &[CommandOutcome]) -> Vec<String> {
    let text = |outcome: &CommandOutcome| match outcome {
        CommandOutcome::Contended => "contended".to_owned(),
        CommandOutcome::Done { done, .. } => match &done.answer {
            CommandReply::Run { number, .. } => format!("#{number}"),
            answer => format!("{answer:?}"),
        },
        CommandOutcome::Rejected(rejection) => rejection.to_string(),
        CommandOutcome::Unreadable(record) => record.to_string(),
        CommandOutcome::Failed(fault) => fault.to_string(),
    };
    outcomes.iter().map(text).collect()
}

#[test]
fn commands_of_one_turn_see_each_other() {
    let store = memory();
    let mut session = session(store.clone());
    let world = world();
    let turn = [put("a", |_| {}), run("a", 1), run("a", 2), run("b", 3)];
    let outcomes = now(session.turn(&world, &turn));
    assert_eq!(numbers(&outcomes), ["Done", "#1", "#2", "there is no job `b`"]);
    // Overlap is `skip`: the second command saw the start by the first.
    assert_eq!((state_of(&store, 1), state_of(&store, 2)), (Some(State::Starting), Some(State::Skipped)));
}

#[test]
fn next_turn_is_prepared_while_a_commit_is_in_flight() {
    let store = memory();
    let mut session = session(store.clone());
    let world = world();
    now(session.turn(&world, &[put("a", |_| {})]));
    let first = now(session.prepare(&world, &[&run("a", 1)])).expect("prepared");
    let first = now(session.submit(first));
    let second = now(session.prepare(&world, &[&run("a", 2)])).expect("prepared");
    assert!(now(session.complete(first)).iter().all(Option::is_some));
    let second = now(session.submit(second));
    assert!(now(session.complete(second)).iter().all(Option::is_some));
    assert_eq!((state_of(&store, 1), state_of(&store, 2)), (Some(State::Starting), Some(State::Skipped)));
}

#[test]
fn lock_released_earlier_in_a_turn_or_in_flight_can_be_taken() {
    for is_pipelined in [false, true] {
        let store = memory();
        let mut session = session(store.clone());
        let world = world();
        let with_lock = |job: &mut Job| job.lock = LockPolicy::Named("l".to_owned());
        now(session.turn(&world, &[put("a", with_lock), put("b", with_lock), run("a", 1)]));
        let ended = stamped(Command::Report { run: run_id(1), report: ProgramReport::Ended(ExitOutcome::SUCCESS) });
        if is_pipelined {
            let first = now(session.prepare(&world, &[&ended])).expect("prepared");
            let first = now(session.submit(first));
            let second = now(session.prepare(&world, &[&run("b", 2)])).expect("prepared");
            now(session.complete(first));
            let second = now(session.submit(second));
            now(session.complete(second));
        } else {
            now(session.turn(&world, &[ended, run("b", 2)]));
        }
        let states = (state_of(&store, 1), state_of(&store, 2));
        assert_eq!(states, (Some(State::Success), Some(State::Starting)), "pipelined: {is_pipelined}");
    }
}

#[test]
fn unreadable_record_fails_only_the_commands_that_need_it() {
    let store = memory();
    let faulty = FaultyStore::new(store.clone());
    now(session(store.clone()).turn(&world(), &[put("bad", |_| {}), put("good", |_| {})]));
    faulty.set(FaultMode::UnreadableJob);
    let outcomes = now(session(faulty).turn(&world(), &[run("bad", 1), run("good", 2), run("bad", 3)]));
    let unreadable = format!("cannot read {}: not a job", RecordKey::Job(id("bad")));
    assert_eq!(numbers(&outcomes), [&unreadable, "#1", &unreadable]);
    assert_eq!(state_of(&store, 2), Some(State::Starting));
}

#[test]
fn unit_on_top_of_a_failed_unit_is_decided_again() {
    let store = memory();
    let faulty = FaultyStore::new(store.clone());
    let mut session = session(faulty.clone());
    let world = world();
    now(session.turn(&world, &[put("a", |_| {})]));
    faulty.set(FaultMode::ReadOnly);
    let first = now(session.prepare(&world, &[&run("a", 1)])).expect("prepared");
    let first = now(session.submit(first));
    let second = now(session.prepare(&world, &[&run("a", 2)])).expect("prepared");
    assert!(matches!(now(session.complete(first))[..], [Some(CommandOutcome::Failed(Fault::ReadOnly(_)))]));
    faulty.set(FaultMode::None);
    let second = now(session.submit(second));
    assert_eq!(now(session.complete(second)), [None], "it has to be decided again");
    now(session.turn(&world, &[run("a", 2)]));
    assert_eq!((state_of(&store, 1), state_of(&store, 2)), (None, Some(State::Starting)));
}

#[test]
fn command_that_loses_a_conflict_is_decided_again() {
    let store = memory();
    let world = world();
    let (mut one, mut other) = (session(store.clone()), session(store.clone()));
    now(one.turn(&world, &[put("a", |_| {})]));
    now(other.turn(&world, &[run("a", 1)]));
    // The cache of `one` still contains no active run.
    let outcomes = now(one.turn(&world, &[run("a", 2)]));
    assert_eq!(numbers(&outcomes), ["#2"]);
    assert_eq!(state_of(&store, 2), Some(State::Skipped));
    // A rejection must not be based on cached records either.
    now(other.turn(
        &world,
        &[stamped(Command::RemoveJob { id: id("a"), source: JobSource::Api, provided: Precondition::Any })],
    ));
    let outcomes = now(one.turn(&world, &[run("a", 3)]));
    assert_eq!(outcomes, [CommandOutcome::Rejected(Rejection::NoJob(id("a")))]);
}

#[test]
fn unknown_outcome_is_resolved_by_reading() {
    let store = memory();
    let faulty = FaultyStore::new(store.clone());
    let mut session = session(faulty.clone());
    let world = world();
    let lock = |job: &mut Job| job.lock = LockPolicy::Job;
    now(session.turn(&world, &[put("a", lock)]));
    for (number, mode) in [(1, FaultMode::CommitsWithoutAnswer), (2, FaultMode::LosesCommit)] {
        faulty.set(mode);
        let outcomes = now(session.turn(&world, &[run("a", number)]));
        let [CommandOutcome::Done { fences, .. }] = &outcomes[..] else { panic!("{mode:?}: {outcomes:?}") };
        assert_eq!(fences.len(), 1, "{mode:?}: the fence of the lock is known");
        assert_eq!(state_of(&store, number), Some(State::Starting), "{mode:?}");
        let report = Command::Report { run: run_id(number), report: ProgramReport::Ended(ExitOutcome::SUCCESS) };
        now(session.turn(&world, &[stamped(report)]));
    }
    faulty.set(FaultMode::LosesEveryCommit);
    let outcomes = now(session.turn(&world, &[run("a", 3)]));
    assert!(matches!(outcomes[..], [CommandOutcome::Failed(Fault::OutcomeUnknown(_))]), "{outcomes:?}");
}

#[test]
fn unavailable_store_fails_every_command() {
    let faulty = FaultyStore::new(memory());
    let mut session = session(faulty.clone());
    faulty.set(FaultMode::Unreachable);
    let outcomes = now(session.turn(&world(), &[put("a", |_| {}), run("a", 1)]));
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, CommandOutcome::Failed(Fault::Unavailable(_)))),
        "{outcomes:?}"
    );
}

#[test]
fn session_with_a_small_cache_decides_correctly() {
    let store = memory();
    let mut session = now(WriterSession::new(Arc::new(store.clone()), 4)).expect("a session");
    let world = world();
    let allow = |job: &mut Job| job.overlap = OverlapPolicy::Allow;
    for name in ["a", "b", "c", "d", "e"] {
        now(session.turn(&world, &[put(name, allow)]));
    }
    for (number, name) in (1..).zip(["a", "b", "c", "d", "e", "a", "c"]) {
        now(session.turn(&world, &[run(name, number)]));
        assert_eq!(state_of(&store, number), Some(State::Starting));
    }
}

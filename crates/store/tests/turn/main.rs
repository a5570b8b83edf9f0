//! The turn against a store that loses answers, is changed by others in between, and refuses: what was decided happens
//! once, on what is really there.

mod moody;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use cronhold_core::command::{Command, Provided, Report, Stamp, Verdict};
use cronhold_core::decision::{Answer, Rejection};
use cronhold_core::job::{Job, Lock, Overlap, Program};
use cronhold_core::record::{Actor, Key, Owner, Record, Source};
use cronhold_core::{JobId, JobUid, NodeId, RunId, State, World};
use cronhold_schedule::{Instant, Span, Zone, Zones};
use cronhold_store::{Asked, Desk, Fault, MemoryStore, Outcome, Store};

use crate::moody::{Mood, Moody};

const START: Instant = Instant::from_secs(1_800_000_000);

/// Everything here answers at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the store in memory answers at once"),
    }
}

fn world() -> World {
    World::new(Arc::new(Zones::bundled()), "2026e".into(), Zone::utc())
}

fn memory() -> MemoryStore {
    MemoryStore::new(Arc::new(|| START))
}

fn desk(store: impl Store + 'static) -> Desk {
    now(Desk::new(Arc::new(store), 1_000)).expect("a desk")
}

fn asked(command: Command) -> Asked {
    let owner = Owner { node: NodeId::from_bits(7), incarnation: 1 };
    Asked { stamp: Stamp { at: START, actor: Actor::Operator("anna".to_owned()), owner }, command }
}

fn id(name: &str) -> JobId {
    JobId::parse(name).expect(name)
}

fn put(name: &str, change: impl FnOnce(&mut Job)) -> Asked {
    let mut job = Job::new(Program::Noop { duration: Span::ZERO });
    change(&mut job);
    let (id, job, uid) = (id(name), Arc::new(job), JobUid::from_bits(1));
    asked(Command::PutJob { id, job, source: Source::Api, uid, provided: Provided::Any })
}

fn run_id(number: u8) -> RunId {
    RunId::from_random(START, [number; 10])
}

fn run(name: &str, number: u8) -> Asked {
    asked(Command::Run { job: id(name), args: BTreeMap::new(), id: run_id(number), at: None })
}

fn state_of(store: &dyn Store, number: u8) -> Option<State> {
    let found = now(store.load(&[Key::Run(run_id(number))])).expect("the store is there");
    match found.into_iter().next().flatten()?.record {
        Record::Run(run) => Some(run.state),
        other => panic!("{other:?}"),
    }
}

fn numbers(outcomes: &[Outcome]) -> Vec<String> {
    let text = |outcome: &Outcome| match outcome {
        Outcome::Done { done, .. } => match &done.answer {
            Answer::Run { number, .. } => format!("#{number}"),
            answer => format!("{answer:?}"),
        },
        Outcome::Rejected(rejection) => rejection.to_string(),
        Outcome::Failed(fault) => fault.to_string(),
    };
    outcomes.iter().map(text).collect()
}

#[test]
fn commands_of_one_turn_see_each_other() {
    let store = memory();
    let mut desk = desk(store.clone());
    let world = world();
    let turn = [put("a", |_| {}), run("a", 1), run("a", 2), run("b", 3)];
    let outcomes = now(desk.turn(&world, &turn));
    assert_eq!(numbers(&outcomes), ["Done", "#1", "#2", "there is no job `b`"]);
    // Overlap is `skip`: the second saw that the first had just started.
    assert_eq!((state_of(&store, 1), state_of(&store, 2)), (Some(State::Starting), Some(State::Skipped)));
}

#[test]
fn the_next_turn_is_decided_while_one_is_in_the_air() {
    let store = memory();
    let mut desk = desk(store.clone());
    let world = world();
    now(desk.turn(&world, &[put("a", |_| {})]));
    let first = now(desk.prepare(&world, &[&run("a", 1)])).expect("prepared");
    let first = now(desk.send(first));
    let second = now(desk.prepare(&world, &[&run("a", 2)])).expect("prepared");
    assert!(now(desk.land(first)).iter().all(Option::is_some));
    let second = now(desk.send(second));
    assert!(now(desk.land(second)).iter().all(Option::is_some));
    assert_eq!((state_of(&store, 1), state_of(&store, 2)), (Some(State::Starting), Some(State::Skipped)));
}

/// A lock that is freed in a turn, or in the one that is in the air, is free for what is decided after it.
#[test]
fn a_lock_that_is_being_freed_is_free() {
    for is_pipelined in [false, true] {
        let store = memory();
        let mut desk = desk(store.clone());
        let world = world();
        let with_lock = |job: &mut Job| job.lock = Lock::Named("l".to_owned());
        now(desk.turn(&world, &[put("a", with_lock), put("b", with_lock), run("a", 1)]));
        let ended = asked(Command::Report { run: run_id(1), report: Report::Ended(Verdict::SUCCESS) });
        if is_pipelined {
            let first = now(desk.prepare(&world, &[&ended])).expect("prepared");
            let first = now(desk.send(first));
            let second = now(desk.prepare(&world, &[&run("b", 2)])).expect("prepared");
            now(desk.land(first));
            let second = now(desk.send(second));
            now(desk.land(second));
        } else {
            now(desk.turn(&world, &[ended, run("b", 2)]));
        }
        let states = (state_of(&store, 1), state_of(&store, 2));
        assert_eq!(states, (Some(State::Success), Some(State::Starting)), "pipelined: {is_pipelined}");
    }
}

#[test]
fn a_record_that_cannot_be_read_fails_only_who_needs_it() {
    let store = memory();
    let moody = Moody::new(store.clone());
    now(desk(store.clone()).turn(&world(), &[put("bad", |_| {}), put("good", |_| {})]));
    moody.set(Mood::HasBadJob);
    let outcomes = now(desk(moody).turn(&world(), &[run("bad", 1), run("good", 2), run("bad", 3)]));
    let broken = "the store failed permanently: a row that is no job";
    assert_eq!(numbers(&outcomes), [broken, "#1", broken]);
    assert_eq!(state_of(&store, 2), Some(State::Starting));
}

#[test]
fn what_builds_on_a_unit_that_failed_fails_too() {
    let store = memory();
    let moody = Moody::new(store.clone());
    let mut desk = desk(moody.clone());
    let world = world();
    now(desk.turn(&world, &[put("a", |_| {})]));
    moody.set(Mood::Refuses);
    let first = now(desk.prepare(&world, &[&run("a", 1)])).expect("prepared");
    let first = now(desk.send(first));
    let second = now(desk.prepare(&world, &[&run("a", 2)])).expect("prepared");
    assert!(matches!(now(desk.land(first))[..], [Some(Outcome::Failed(Fault::ReadOnly(_)))]));
    moody.set(Mood::Calm);
    let second = now(desk.send(second));
    assert_eq!(now(desk.land(second)), [None], "it has to be decided again");
    now(desk.turn(&world, &[run("a", 2)]));
    assert_eq!((state_of(&store, 1), state_of(&store, 2)), (None, Some(State::Starting)));
}

#[test]
fn a_decision_is_made_again_when_someone_was_faster() {
    let store = memory();
    let world = world();
    let (mut one, mut other) = (desk(store.clone()), desk(store.clone()));
    now(one.turn(&world, &[put("a", |_| {})]));
    now(other.turn(&world, &[run("a", 1)]));
    // `one` still remembers that nothing runs.
    let outcomes = now(one.turn(&world, &[run("a", 2)]));
    assert_eq!(numbers(&outcomes), ["#2"]);
    assert_eq!(state_of(&store, 2), Some(State::Skipped));
    // A refusal must not rest on what is only remembered either.
    now(other.turn(&world, &[asked(Command::RemoveJob { id: id("a"), source: Source::Api, provided: Provided::Any })]));
    let outcomes = now(one.turn(&world, &[run("a", 3)]));
    assert_eq!(outcomes, [Outcome::Rejected(Rejection::NoJob(id("a")))]);
}

#[test]
fn a_lost_answer_is_found_again() {
    let store = memory();
    let moody = Moody::new(store.clone());
    let mut desk = desk(moody.clone());
    let world = world();
    let lock = |job: &mut Job| job.lock = Lock::Job;
    now(desk.turn(&world, &[put("a", lock)]));
    for (number, mood) in [(1, Mood::DoesAndForgets), (2, Mood::ForgetsAndDoesNot)] {
        moody.set(mood);
        let outcomes = now(desk.turn(&world, &[run("a", number)]));
        let [Outcome::Done { fences, .. }] = &outcomes[..] else { panic!("{mood:?}: {outcomes:?}") };
        assert_eq!(fences.len(), 1, "{mood:?}: the fence of the lock is known");
        assert_eq!(state_of(&store, number), Some(State::Starting), "{mood:?}");
        let report = Command::Report { run: run_id(number), report: Report::Ended(Verdict::SUCCESS) };
        now(desk.turn(&world, &[asked(report)]));
    }
    moody.set(Mood::NeverAnswers);
    let outcomes = now(desk.turn(&world, &[run("a", 3)]));
    assert!(matches!(outcomes[..], [Outcome::Failed(Fault::Unknown(_))]), "{outcomes:?}");
}

#[test]
fn a_store_that_cannot_be_read_fails_every_command() {
    let moody = Moody::new(memory());
    let mut desk = desk(moody.clone());
    moody.set(Mood::Away);
    let outcomes = now(desk.turn(&world(), &[put("a", |_| {}), run("a", 1)]));
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Failed(Fault::Away(_)))), "{outcomes:?}");
}

#[test]
fn one_desk_forgets_what_it_cannot_hold() {
    let store = memory();
    let mut desk = now(Desk::new(Arc::new(store.clone()), 4)).expect("a desk");
    let world = world();
    let allow = |job: &mut Job| job.overlap = Overlap::Allow;
    for name in ["a", "b", "c", "d", "e"] {
        now(desk.turn(&world, &[put(name, allow)]));
    }
    for (number, name) in (1..).zip(["a", "b", "c", "d", "e", "a", "c"]) {
        now(desk.turn(&world, &[run(name, number)]));
        assert_eq!(state_of(&store, number), Some(State::Starting));
    }
}

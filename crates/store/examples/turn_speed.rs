//! How long a turn takes when the store costs next to nothing: `cargo run --release -p cronhold-store --example
//! turn_speed`. A run is two commands: its creation, and the report of its program's end.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use cronhold_core::command::{Command, CommandStamp, ExitOutcome, Precondition, ProgramReport};
use cronhold_core::job::{Job, OverlapPolicy, Program};
use cronhold_core::record::{Actor, JobSource, RunOwner};
use cronhold_core::{DecisionContext, JobId, JobUid, NodeId, RunId};
use cronhold_schedule::{Instant, Span, Zone, ZoneRegistry};
use cronhold_store::{CommandOutcome, MemoryStore, StampedCommand, WriterSession};

const JOBS: u64 = 1_000;
const BATCH: u64 = 256;
const ROUNDS: u64 = 200;

/// The store in memory answers at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the store in memory answers at once"),
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn main() {
    let world = DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "2026e".into(), Zone::utc());
    let store = Arc::new(MemoryStore::new(Arc::new(|| Instant::from_secs(1_800_000_000))));
    let mut session = now(WriterSession::new(store, 50_000)).expect("a session");
    let owner = RunOwner { node: NodeId::from_bits(1), incarnation: 1 };
    let asked =
        |at: Instant, command| StampedCommand { stamp: CommandStamp { at, actor: Actor::Schedule, owner }, command };
    let start = Instant::from_secs(1_800_000_000);
    let mut job = Job::new(Program::Noop { duration: Span::ZERO });
    job.overlap = OverlapPolicy::Allow;
    let job = Arc::new(job);
    let id = |number: u64| JobId::parse(&format!("job{}", number % JOBS)).expect("an id");
    let put = |number: u64| Command::PutJob {
        id: id(number),
        job: Arc::clone(&job),
        source: JobSource::Api,
        uid: JobUid::from_bits(u128::from(number)),
        provided: Precondition::Any,
    };
    let puts: Vec<StampedCommand> = (0..JOBS).map(|number| asked(start, put(number))).collect();
    assert!(now(session.turn(&world, &puts)).iter().all(|outcome| matches!(outcome, CommandOutcome::Done { .. })));

    let before = std::time::Instant::now();
    let mut number = 0;
    for round in 0..ROUNDS {
        let at = start.plus(Span::from_millis(round));
        let mut runs = Vec::new();
        let mut asks = Vec::new();
        for _ in 0..BATCH {
            number += 1;
            let mut random = [0; 10];
            random[..8].copy_from_slice(&u64::to_be_bytes(number));
            let run = RunId::from_random(at, random);
            runs.push(run);
            asks.push(asked(
                at,
                Command::Run { job: id(number), args: BTreeMap::new(), id: run, at: None, stop: None },
            ));
        }
        let outcomes = now(session.turn(&world, &asks));
        assert!(outcomes.iter().all(|outcome| matches!(outcome, CommandOutcome::Done { .. })), "{:?}", outcomes[0]);
        let ended = |run: &RunId| Command::Report { run: *run, report: ProgramReport::Ended(ExitOutcome::SUCCESS) };
        let reports: Vec<StampedCommand> = runs.iter().map(|run| asked(at, ended(run))).collect();
        let outcomes = now(session.turn(&world, &reports));
        assert!(outcomes.iter().all(|outcome| matches!(outcome, CommandOutcome::Done { .. })), "{:?}", outcomes[0]);
    }
    let micros = before.elapsed().as_micros() as u64;
    println!("{} runs, {:.1} µs each", ROUNDS * BATCH, micros as f64 / (ROUNDS * BATCH) as f64);
}

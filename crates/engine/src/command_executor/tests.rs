//! Commands on a memory store without a node, and what a node then does with their results.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use cronhold_core::command::Precondition;
use cronhold_core::decision::{CommandReply, Rejection};
use cronhold_core::job::{Job, NodeSelector, OverlapPolicy, Program};
use cronhold_core::record::{JobSource, JobState, NodeRecord, Record, RecordKey, Run};
use cronhold_core::signal::Signal;
use cronhold_core::{JobId, JobUid, RunId, State};
use cronhold_schedule::{Span, Zone, ZoneRegistry};
use cronhold_store::{MemoryStore, Pending, Wrapper};

use super::*;
use crate::race::race;

/// The store's time. The system clock differs.
const STORE_TIME: Instant = Instant::from_secs(1_800_000_000);
/// A test that was polled this often is stuck.
const POLLS_MAX: usize = 1_000;

#[derive(Debug)]
struct WrongClock;

impl MachineClock for WrongClock {
    fn now(&self) -> Instant {
        Instant::from_secs(7)
    }

    fn uptime(&self) -> Span {
        Span::ZERO
    }

    fn sleep(&self, _: Span) -> Pending<'_, ()> {
        Box::pin(std::future::pending())
    }
}

#[derive(Debug, Default)]
struct CountingEntropy(AtomicU64);

impl EntropySource for CountingEntropy {
    fn bits(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1) << 64
    }
}

/// A store that can be unreachable.
#[derive(Debug)]
struct UnreachableStore {
    store: MemoryStore,
    is_unreachable: Arc<AtomicBool>,
}

impl Wrapper for UnreachableStore {
    fn inside(&self) -> &dyn Store {
        &self.store
    }

    fn enroll(&self) -> Pending<'_, Result<cronhold_store::WriterId, Fault>> {
        match self.is_unreachable.load(Ordering::Relaxed) {
            true => Box::pin(async { Err(Fault::Unavailable("no answer".to_owned())) }),
            false => self.store.enroll(),
        }
    }
}

fn world() -> DecisionContext {
    DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "test".into(), Zone::utc())
}

fn with_executor(store: Arc<dyn Store>, test: impl AsyncFnOnce(&NodeHandle)) {
    let (executor, handle) =
        CommandExecutor::new(store, Arc::new(WrongClock), Arc::new(CountingEntropy::default()), world());
    let asking = async {
        test(&handle).await;
        handle.stop().await;
        std::future::pending::<()>().await;
    };
    let mut both = pin!(race(executor.run(), asking));
    let mut context = Context::from_waker(Waker::noop());
    let is_over = (0..POLLS_MAX).any(|_| matches!(both.as_mut().poll(&mut context), Poll::Ready(_)));
    assert!(is_over, "the executor stops");
}

fn memory() -> MemoryStore {
    MemoryStore::new(Arc::new(|| STORE_TIME))
}

fn anna() -> Actor {
    Actor::Operator("anna".to_owned())
}

fn job_id() -> JobId {
    JobId::parse("j").expect("an id")
}

fn put(job: Job) -> Command {
    let (id, uid) = (job_id(), JobUid::from_bits(1));
    Command::PutJob { id, job: Arc::new(job), source: JobSource::Api, uid, provided: Precondition::Any }
}

fn job() -> Job {
    Job { overlap: OverlapPolicy::Allow, ..Job::new(Program::Noop { duration: Span::ZERO }) }
}

fn run(id: RunId) -> Command {
    Command::Run { job: job_id(), args: BTreeMap::new(), id, at: None, stop: None }
}

async fn stored_run(store: &MemoryStore, id: RunId) -> Arc<Run> {
    let found = store.load(&[RecordKey::Run(id)]).await.expect("the store works");
    match found.into_iter().flatten().next().map(|stored| stored.record) {
        Some(Record::Run(run)) => run,
        other => panic!("{other:?}"),
    }
}

#[test]
fn run_created_without_a_node_is_started_by_a_node() {
    let store = memory();
    let others = store.clone();
    with_executor(Arc::new(store), async |handle| {
        assert_eq!(handle.request(anna(), put(job())).await, Ok(CommandReply::Done));
        let id = RunId::from_key(STORE_TIME, "one");
        assert!(matches!(handle.request(anna(), run(id)).await, Ok(CommandReply::Run { .. })));
        let made = stored_run(&others, id).await;
        assert_eq!((made.state, made.owner, made.nominal), (State::Waiting, None, STORE_TIME));
        let found = others.load(&[RecordKey::JobState(job_id())]).await.expect("the store works");
        let queue = |state: &JobState| state.queue.iter().map(|queued| queued.run).collect::<Vec<_>>();
        let Some(Record::JobState(state)) = found[0].as_ref().map(|stored| &stored.record) else { panic!("{found:?}") };
        assert_eq!(queue(state), [id], "a node that is notified starts it");

        let mut session = WriterSession::new(Arc::new(others.clone()), 10).await.expect("the store works");
        let owner = RunOwner { node: NodeId::from_bits(5), incarnation: session.writer() };
        let stamp = CommandStamp { at: STORE_TIME, actor: Actor::Queue, owner };
        let woken = session.turn(&world(), &[StampedCommand { stamp, command: Command::Wake { run: id } }]).await;
        assert!(matches!(woken[0], CommandOutcome::Done { .. }), "{woken:?}");
        let started = stored_run(&others, id).await;
        assert_eq!((started.state, started.owner), (State::Starting, Some(owner)));
        assert_eq!(handle.request(anna(), Command::Stop { run: id }).await, Ok(CommandReply::Done));
        assert_eq!(stored_run(&others, id).await.state, State::Stopping);
    });
}

#[test]
fn starting_a_run_is_rejected_without_a_node() {
    with_executor(Arc::new(memory()), async |handle| {
        let id = RunId::from_key(STORE_TIME, "one");
        handle.request(anna(), put(job())).await.expect("a job");
        handle.request(anna(), run(id)).await.expect("a run");
        let refused = Err(RequestError::Rejected(Rejection::NotANode));
        assert_eq!(handle.request(anna(), Command::Start { run: id }).await, refused);
        let each = Job { nodes: NodeSelector::Each(Default::default()), ..job() };
        handle.request(anna(), put(each)).await.expect("a job");
        assert_eq!(handle.request(anna(), run(RunId::from_key(STORE_TIME, "two"))).await, refused);
    });
}

#[test]
fn only_live_nodes_are_considered() {
    let store = memory();
    let others = store.clone();
    let node = NodeRecord::new(NodeId::from_bits(5), "five", 1, STORE_TIME);
    let there = NodeRecord { gone: STORE_TIME.plus(Span::from_secs(6)), ..node.clone() };
    let gone = NodeRecord { id: NodeId::from_bits(6), ..node };
    let (mut executor, _) =
        CommandExecutor::new(Arc::new(store), Arc::new(WrongClock), Arc::new(CountingEntropy::default()), world());
    let mut looking = pin!(async {
        others.beat(&there, &[]).await.expect("the store works");
        others.beat(&gone, &[]).await.expect("the store works");
        executor.prepare().await.expect("the store works");
        executor.world.nodes.iter().map(|node| node.id.bits()).collect::<Vec<_>>()
    });
    assert_eq!(looking.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(vec![5]));
}

#[test]
fn unreachable_store_fails_a_request_and_the_next_one_retries() {
    let is_unreachable = Arc::new(AtomicBool::new(true));
    let unreachable = UnreachableStore { store: memory(), is_unreachable: Arc::clone(&is_unreachable) };
    with_executor(Arc::new(unreachable), async |handle| {
        let failed = handle.request(anna(), put(job())).await;
        assert_eq!(failed, Err(RequestError::Failed(Fault::Unavailable("no answer".to_owned()))));
        is_unreachable.store(false, Ordering::Relaxed);
        assert_eq!(handle.request(anna(), put(job())).await, Ok(CommandReply::Done));
    });
}

/// A kill is stored and reaches every node. Other signals are sent only by the node that has the program.
#[test]
fn run_can_be_killed_but_not_signalled_without_a_node() {
    let store = memory();
    let others = store.clone();
    with_executor(Arc::new(store), async |handle| {
        let id = RunId::from_key(STORE_TIME, "one");
        handle.request(anna(), put(job())).await.expect("a job");
        handle.request(anna(), run(id)).await.expect("a run");
        let mut session = WriterSession::new(Arc::new(others.clone()), 10).await.expect("the store works");
        let owner = RunOwner { node: NodeId::from_bits(5), incarnation: session.writer() };
        for command in [
            Command::Wake { run: id },
            Command::Report { run: id, report: cronhold_core::command::ProgramReport::Launched },
        ] {
            let stamp = CommandStamp { at: STORE_TIME, actor: Actor::Queue, owner };
            session.turn(&world(), &[StampedCommand { stamp, command }]).await;
        }
        let signal = |name| Command::Signal { run: id, signal: Signal::parse(name).expect("a signal") };
        let refused = Err(RequestError::Rejected(Rejection::RunsElsewhere(owner.node)));
        assert_eq!(handle.request(anna(), signal("SIGHUP")).await, refused);
        assert_eq!(handle.request(anna(), signal("SIGKILL")).await, Ok(CommandReply::Done));
        assert!(stored_run(&others, id).await.ending.is_some());
    });
}

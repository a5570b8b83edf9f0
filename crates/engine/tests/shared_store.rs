//! A node on a shared store, with a clock that the test moves.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use cronhold_core::command::{Command, Precondition};
use cronhold_core::decision::CommandReply;
use cronhold_core::job::{Job, Program};
use cronhold_core::record::{Actor, JobSource, LockName, NodeRecord, Record, RecordKey, StoredRecord};
use cronhold_core::{DecisionContext, JobId, JobUid, NodeId, RunId, State};
use cronhold_engine::{
    CommandExecutor, Engine, EngineEvent, EngineObserver, EntropySource, MachineClock, NoPrograms, NodeHandle,
    NodePorts, Options, RequestError,
};
use cronhold_schedule::{Instant, Span, Zone, ZoneRegistry};
use cronhold_store::{Fault, MemoryStore, Pending, Store, Unit, UnitReceipt, UnitRefusal, Wrapper};

const START: Instant = Instant::from_secs(1_800_000_000);
const NODE: NodeId = NodeId::from_bits(7);
/// The test moves the time in these steps.
const STEP: Span = Span::from_millis(50);
/// A test that waits for more steps than this is stuck.
const STEPS_MAX: usize = 2_000;

/// The time since the test began, and how far the system clock is off.
#[derive(Debug, Default)]
struct TestClock {
    passed: AtomicU64,
    ahead: AtomicI64,
}

impl TestClock {
    fn passed(&self) -> Span {
        Span::from_micros(self.passed.load(Ordering::Relaxed))
    }
}

impl MachineClock for TestClock {
    fn now(&self) -> Instant {
        Instant::from_micros(START.plus(self.passed()).micros() + self.ahead.load(Ordering::Relaxed))
    }

    fn uptime(&self) -> Span {
        self.passed()
    }

    fn sleep(&self, span: Span) -> Pending<'_, ()> {
        let until = self.passed().plus(span);
        Box::pin(poll_fn(move |_| if self.passed() >= until { Poll::Ready(()) } else { Poll::Pending }))
    }
}

/// Predictable entropy, a program runner that does nothing, and a list of the events that the tests check.
#[derive(Debug, Default)]
struct TestPorts {
    drawn: AtomicU64,
    events: Mutex<Vec<String>>,
}

impl EntropySource for TestPorts {
    fn bits(&self) -> u128 {
        u128::from(self.drawn.fetch_add(1, Ordering::Relaxed))
    }
}

impl EngineObserver for TestPorts {
    fn on_event(&self, news: &EngineEvent<'_>) {
        let event = match news {
            EngineEvent::Skew { is_off: false, .. } => "right".to_owned(),
            EngineEvent::Skew { is_ahead, by, .. } => format!("{by} {}", if *is_ahead { "ahead" } else { "behind" }),
            EngineEvent::RecordUnreadable { key: Some(key), .. } => format!("unreadable {key}"),
            EngineEvent::CommandDropped { .. } => "dropped".to_owned(),
            _ => return,
        };
        self.events.lock().expect("no panic").push(event);
    }
}

/// A store that can be full, and that can have a record which cannot be read.
#[derive(Debug)]
struct FailingStore {
    store: MemoryStore,
    is_full: Arc<AtomicBool>,
    unreadable: Arc<Mutex<Option<RecordKey>>>,
}

impl FailingStore {
    fn fault(&self) -> Option<Fault> {
        self.is_full.load(Ordering::Relaxed).then(|| Fault::ReadOnly("no room".to_owned()))
    }
}

impl Wrapper for FailingStore {
    fn inside(&self) -> &dyn Store {
        &self.store
    }

    fn load<'a>(&'a self, keys: &'a [RecordKey]) -> Pending<'a, Result<Vec<Option<StoredRecord>>, Fault>> {
        let unreadable = self.unreadable.lock().expect("no panic").clone();
        match unreadable.filter(|key| keys.contains(key)) {
            Some(key) => Box::pin(async move { Err(Fault::Permanent(format!("{key} is damaged"))) }),
            None => self.store.load(keys),
        }
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        match self.fault() {
            Some(fault) => Box::pin(async move { vec![Err(fault.into()); units.len()] }),
            None => self.store.commit(units),
        }
    }

    fn beat<'a>(
        &'a self,
        node: &'a NodeRecord,
        locks: &'a [(LockName, RunId)],
    ) -> Pending<'a, Result<Vec<LockName>, Fault>> {
        match self.fault() {
            Some(fault) => Box::pin(async { Err(fault) }),
            None => self.store.beat(node, locks),
        }
    }
}

fn world() -> DecisionContext {
    DecisionContext::new(Arc::new(ZoneRegistry::bundled()), "test".into(), Zone::utc())
}

/// A node and its ports.
struct TestNode {
    time: Arc<TestClock>,
    ports_under_test: Arc<TestPorts>,
    store: MemoryStore,
    is_full: Arc<AtomicBool>,
    unreadable: Arc<Mutex<Option<RecordKey>>>,
    handle: NodeHandle,
    engine: Pin<Box<dyn Future<Output = ()>>>,
}

impl TestNode {
    fn new(ahead: i64) -> Self {
        let time = Arc::new(TestClock::default());
        time.ahead.store(ahead, Ordering::Relaxed);
        let of_store = Arc::clone(&time);
        let store = MemoryStore::new(Arc::new(move || START.plus(of_store.passed())));
        let ports_under_test = Arc::new(TestPorts::default());
        let (is_full, unreadable) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let ports = NodePorts {
            clock: Arc::clone(&time) as _,
            entropy: Arc::clone(&ports_under_test) as _,
            store: Arc::new(FailingStore {
                store: store.clone(),
                is_full: Arc::clone(&is_full),
                unreadable: Arc::clone(&unreadable),
            }),
            programs: Arc::new(NoPrograms),
            feed: Arc::clone(&ports_under_test) as _,
        };
        let (engine, handle) = Engine::new(ports, Options::new(NODE, "seven"), world());
        let engine = Box::pin(async move { engine.run().await.expect("the store works") });
        Self { time, ports_under_test, store, is_full, unreadable, handle, engine }
    }

    /// Moves the time until `check` returns something.
    fn until<T>(&mut self, mut check: impl FnMut(&Self, &mut Context<'_>) -> Option<T>) -> T {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..STEPS_MAX {
            assert!(self.engine.as_mut().poll(&mut context).is_pending(), "the node does not stop");
            if let Some(found) = check(self, &mut context) {
                return found;
            }
            self.time.passed.fetch_add(STEP.micros(), Ordering::Relaxed);
        }
        panic!("the test is stuck")
    }

    fn pass(&mut self, span: Span) {
        let end = self.time.passed().plus(span);
        self.until(|node, _| (node.time.passed() >= end).then_some(()));
    }

    fn request(&mut self, command: Command) -> CommandReply {
        self.try_request(command).expect("accepted")
    }

    fn try_request(&mut self, command: Command) -> Result<CommandReply, RequestError> {
        let handle = self.handle.clone();
        let mut reply = pin!(handle.request(Actor::Operator("anna".to_owned()), command));
        self.until(|_, context| match reply.as_mut().poll(context) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        })
    }

    fn record(&self, key: RecordKey) -> Option<Record> {
        let keys = [key];
        let mut loading = self.store.load(&keys);
        match loading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(found) => found.expect("the store works").remove(0).map(|stored| stored.record),
            Poll::Pending => panic!("the memory store answers at once"),
        }
    }

    fn events(&self) -> Vec<String> {
        self.ports_under_test.events.lock().expect("no panic").clone()
    }
}

/// A node renews the locks that it holds. The lock of an event expires, so that the same event can come again.
#[test]
fn locks_of_events_are_not_renewed() {
    let mut node = TestNode::new(0);
    let holder = RunId::from_key(START, "seven");
    let held = LockName::parse("#cronhold/loader/").expect("a name");
    let once = LockName::of_event("e1").expect("a name");
    node.request(Command::AcquireLock { lock: held.clone(), holder, ttl: Span::from_millis(600) });
    let pause = Box::new(Command::Pause { job: None, why: String::new() });
    assert_eq!(node.request(Command::Event { once: once.clone(), holder, command: pause }), CommandReply::Done);
    assert!(node.record(RecordKey::Lock(once.clone())).is_some(), "other nodes see that the event was handled");
    node.pass(Span::from_secs(3));
    assert!(node.record(RecordKey::Lock(held)).is_some());
    assert_eq!(node.record(RecordKey::Lock(once)), None);
}

#[test]
fn wrong_system_clock_is_reported_once_and_when_it_is_right_again() {
    let mut node = TestNode::new(-1_500_000);
    let skew = |node: &TestNode| match node.record(RecordKey::Node(NODE)) {
        Some(Record::Node(node)) => node.skew,
        other => panic!("{other:?}"),
    };
    node.pass(Span::from_secs(10));
    assert_eq!((node.events(), skew(&node)), (vec!["1s500ms behind".to_owned()], Some(-1_500_000)));
    node.time.ahead.store(20_000, Ordering::Relaxed);
    node.pass(Span::from_secs(10));
    assert_eq!((node.events().last().map(String::as_str), skew(&node)), (Some("right"), Some(20_000)));
    assert_eq!(node.events().len(), 2, "each change is reported once");
}

/// The node is notified of the run. The run itself is due for a check only a minute later.
#[test]
fn run_created_without_a_node_is_started_within_seconds() {
    let mut node = TestNode::new(0);
    node.pass(Span::from_secs(1));
    let (store, clock, entropy) =
        (Arc::new(node.store.clone()), Arc::clone(&node.time), Arc::clone(&node.ports_under_test));
    let (executor, handle) = CommandExecutor::new(store, clock, entropy, world());
    let job = JobId::parse("j").expect("an id");
    let id = RunId::from_key(START, "by command");
    let requests = async {
        let anna = || Actor::Operator("anna".to_owned());
        let definition = Arc::new(Job::new(Program::Noop { duration: Span::ZERO }));
        let (source, uid, provided) = (JobSource::Api, JobUid::from_bits(1), Precondition::Any);
        let put = Command::PutJob { id: job.clone(), job: definition, source, uid, provided };
        handle.request(anna(), put).await.expect("accepted");
        let run = Command::Run { job: job.clone(), args: BTreeMap::new(), id, at: None };
        handle.request(anna(), run).await.expect("accepted");
    };
    let (mut working, mut requests) = (pin!(executor.run()), pin!(requests));
    node.until(|_, context| {
        let _ = working.as_mut().poll(context);
        matches!(requests.as_mut().poll(context), Poll::Ready(())).then_some(())
    });
    let made = node.time.passed();
    node.until(|node, _| match node.record(RecordKey::Run(id)) {
        Some(Record::Run(run)) => (run.state == State::Starting).then_some(()),
        other => panic!("{other:?}"),
    });
    let late = Span::from_micros(node.time.passed().micros() - made.micros());
    assert!(late < Span::from_secs(5), "{late}");
}

/// Heartbeats fail more often than commands are tried. They must not put off the reply.
#[test]
fn request_on_a_full_store_fails_within_seconds() {
    let mut node = TestNode::new(0);
    let pause = || Command::Pause { job: None, why: String::new() };
    node.pass(Span::from_secs(5));
    node.is_full.store(true, Ordering::Relaxed);
    node.pass(Span::from_secs(60));
    for _ in 0..3 {
        let sent = node.time.passed();
        assert_eq!(node.try_request(pause()), Err(RequestError::Failed(Fault::ReadOnly("no room".to_owned()))));
        assert!(
            node.time.passed().minus(sent) <= Span::from_secs(6),
            "the reply took {}",
            node.time.passed().minus(sent)
        );
    }
    node.is_full.store(false, Ordering::Relaxed);
    assert_eq!(node.request(pause()), CommandReply::Done);
}

#[test]
fn unreadable_record_is_reported_with_its_key_and_fails_only_what_needs_it() {
    let mut node = TestNode::new(0);
    node.pass(Span::from_secs(1));
    let key = RecordKey::Job(JobId::parse("j").expect("an id"));
    *node.unreadable.lock().expect("no panic") = Some(key.clone());
    let run = Command::Run { job: JobId::parse("j").expect("an id"), args: BTreeMap::new(), id: RunId::MIN, at: None };
    assert!(matches!(node.try_request(run), Err(RequestError::Failed(Fault::Permanent(_)))));
    assert_eq!(node.request(Command::Pause { job: None, why: String::new() }), CommandReply::Done);
    assert_eq!((node.events(), node.handle.counters().unreadable), (vec![format!("unreadable {key}")], 1));
}

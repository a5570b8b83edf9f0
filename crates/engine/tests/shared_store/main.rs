//! A node on a shared store, with a clock that the test moves.

mod ad_hoc;
mod limits;
mod outputs;
mod rename;
mod repairs;
mod waits;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use cronhold_core::NameMap;
use cronhold_core::command::{Command, ExitOutcome, Precondition, ProgramReport};
use cronhold_core::decision::{CommandReply, RecordChange};
use cronhold_core::job::{Job, JobSchedule, Param, Program};
use cronhold_core::record::{
    ActivePause, ActiveRun, Actor, ClaimedRanges, Cursor, JobRecord, JobSource, JobState, LockName, NodeRecord,
    PauseState, Record, RecordKey, RecordVersion, Run, ScheduleId, StoredRecord,
};
use cronhold_core::{DecisionContext, JobId, JobUid, NodeId, RunId, RunNumber, State, Template};
use cronhold_engine::{
    CommandExecutor, Engine, EngineEvent, EngineObserver, EntropySource, MachineClock, NoPrograms, NodeHandle,
    NodePorts, Options, RequestError,
};
use cronhold_schedule::{Instant, ScheduleSpec, Span, Zone, ZoneRegistry};
use cronhold_store::{
    Fault, Hint, MemoryStore, Pending, Query, RunQuery, Store, StoreLimits, Unit, UnitReceipt, UnitRefusal,
    UnreadableRecord, Wrapper,
};

const START: Instant = Instant::from_secs(1_800_000_000);
const NODE: NodeId = NodeId::from_bits(7);
/// The total size of the outputs that the node keeps, in bytes.
const OUTPUTS_MAX: u64 = 300;
/// The test moves the time in these steps.
const STEP: Span = Span::from_millis(50);
/// A test that waits for more steps than this is stuck.
const STEPS_MAX: usize = 40_000;

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
            EngineEvent::RecordUnreadable(UnreadableRecord { key: Some(key), .. }) => format!("unreadable {key}"),
            EngineEvent::CommandDropped { .. } => "dropped".to_owned(),
            EngineEvent::StoreUnavailable(fault) => fault.to_string(),
            _ => return,
        };
        self.events.lock().expect("no panic").push(event);
    }
}

/// A store that can be full, that can have a record which cannot be read, and whose notifications can be lost.
#[derive(Debug)]
struct FailingStore {
    store: MemoryStore,
    is_silent: bool,
    is_full: Arc<AtomicBool>,
    unreadable: Arc<Mutex<Option<RecordKey>>>,
    /// Units that write this record lose a conflict, that often.
    contended: Arc<Mutex<Option<(RecordKey, u32)>>>,
}

impl FailingStore {
    /// The conflict of a unit with another writer, if it has one.
    fn conflict(&self, unit: &Unit) -> Option<UnitRefusal> {
        let mut contended = self.contended.lock().expect("no panic");
        let (key, left) = contended.as_mut().filter(|(_, left)| *left > 0)?;
        unit.compare.iter().find(|(compared, _)| compared == key)?;
        *left -= 1;
        Some(UnitRefusal::Conflict(key.clone()))
    }

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
            Some(key) => Box::pin(async move {
                let reason = "it is damaged".to_owned();
                Err(Fault::Unreadable(Box::new(UnreadableRecord { key: Some(key), version: None, reason })))
            }),
            None => self.store.load(keys),
        }
    }

    fn hints(&self) -> Pending<'_, Vec<Hint>> {
        if self.is_silent { Box::pin(std::future::pending()) } else { self.store.hints() }
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        match self.fault() {
            Some(fault) => Box::pin(async move { vec![Err(fault.into()); units.len()] }),
            None => Box::pin(async move {
                let mut results = Vec::new();
                for unit in units {
                    results.push(match self.conflict(&unit) {
                        Some(conflict) => Err(conflict),
                        None => self.store.commit(vec![unit]).await.remove(0),
                    });
                }
                results
            }),
        }
    }

    fn beat<'a>(
        &'a self,
        node: &'a NodeRecord,
        locks: &'a [(LockName, RunId)],
    ) -> Pending<'a, Result<Vec<(LockName, RunId)>, Fault>> {
        match self.fault() {
            Some(fault) => Box::pin(async { Err(fault) }),
            None => self.store.beat(node, locks),
        }
    }
}

/// The result of a future of the memory store, which is ready at once.
fn at_once<T>(mut future: Pending<'_, T>) -> T {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the memory store answers at once"),
    }
}

/// Writes records without a decision, as a store that lost some of its writes has them.
fn write(store: &MemoryStore, changes: Vec<RecordChange>) {
    let writer = at_once(store.enroll()).expect("the store works");
    let keys: Vec<RecordKey> = changes.iter().map(RecordChange::key).collect();
    let stored = at_once(store.load(&keys)).expect("the store works").into_iter();
    let compare = keys.iter().cloned().zip(stored.map(|stored| stored.map(|stored| stored.version))).collect();
    let version = RecordVersion::new(writer.0, 1);
    let unit = Unit { version, compare, changes, take: Vec::new(), free: Vec::new() };
    assert!(at_once(store.commit(vec![unit]))[0].is_ok());
}

fn job_id(name: &str) -> JobId {
    JobId::parse(name).expect("an id")
}

/// A command that puts a job with a schedule.
fn put(name: &str, schedule: &str) -> Command {
    let mut job = Job::new(Program::Noop { duration: Span::ZERO });
    let spec = ScheduleSpec::parse(schedule).expect("a schedule");
    let name_of_schedule = Some("s".to_owned());
    job.schedules.push(JobSchedule { name: name_of_schedule, spec, args: NameMap::new(), enabled: true, stop: None });
    let (source, uid, provided) = (JobSource::Api, JobUid::from_bits(1), Precondition::Any);
    Command::PutJob { id: job_id(name), job: Arc::new(job), source, uid, provided }
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
    contended: Arc<Mutex<Option<(RecordKey, u32)>>>,
    handle: NodeHandle,
    engine: Pin<Box<dyn Future<Output = ()>>>,
}

impl TestNode {
    fn new(ahead: i64) -> Self {
        Self::on_store(ahead, false, |_| {})
    }

    /// A node that starts on a store which has records already, and that receives no notifications if it `is_silent`.
    fn on_store(ahead: i64, is_silent: bool, fill: impl FnOnce(&MemoryStore)) -> Self {
        Self::start(StoreLimits::default(), ahead, is_silent, fill)
    }

    /// A node on a store with limits.
    fn with_limits(limits: StoreLimits) -> Self {
        Self::start(limits, 0, false, |_| {})
    }

    fn start(limits: StoreLimits, ahead: i64, is_silent: bool, fill: impl FnOnce(&MemoryStore)) -> Self {
        let time = Arc::new(TestClock::default());
        time.ahead.store(ahead, Ordering::Relaxed);
        let of_store = Arc::clone(&time);
        let store = MemoryStore::with_limits(Arc::new(move || START.plus(of_store.passed())), limits);
        fill(&store);
        let ports_under_test = Arc::new(TestPorts::default());
        let (is_full, unreadable, contended) = (Arc::new(AtomicBool::new(false)), Arc::default(), Arc::default());
        let ports = NodePorts {
            clock: Arc::clone(&time) as _,
            entropy: Arc::clone(&ports_under_test) as _,
            store: Arc::new(FailingStore {
                store: store.clone(),
                is_silent,
                is_full: Arc::clone(&is_full),
                unreadable: Arc::clone(&unreadable),
                contended: Arc::clone(&contended),
            }),
            programs: Arc::new(NoPrograms),
            feed: Arc::clone(&ports_under_test) as _,
        };
        let (engine, handle) =
            Engine::new(ports, Options { outputs_max: Some(OUTPUTS_MAX), ..Options::new(NODE, "seven") }, world());
        let engine = Box::pin(async move { engine.run().await.expect("the store works") });
        Self { time, ports_under_test, store, is_full, unreadable, contended, handle, engine }
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

    /// Lets days pass at once.
    fn days(&self, days: u64) {
        self.time.passed.fetch_add(Span::from_secs(days * 86_400).micros(), Ordering::Relaxed);
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
        at_once(self.store.load(&[key])).expect("the store works").remove(0).map(|stored| stored.record)
    }

    /// The latest run of a job; `None` if its latest record is a span of skips.
    fn latest_run(&self, job: &str) -> Option<Arc<Run>> {
        let query = Query::Runs(RunQuery { job: Some(job_id(job)), ..RunQuery::default() });
        match at_once(self.store.page(&query, 1)).expect("the store works").records.pop()?.record {
            Record::Run(run) => Some(run),
            _ => None,
        }
    }

    fn events(&self) -> Vec<String> {
        self.ports_under_test.events.lock().expect("no panic").clone()
    }
}

/// Puts a job whose runs end in error at once, because their program cannot be resolved.
fn put_failing_job(node: &mut TestNode, name: &str) {
    let mut job = Job::new(Program::Shell(Template::parse("{{ date(x) }}").expect("a template")));
    job.params = NameMap::from([("x".to_owned(), Param::default())]);
    node.request(Command::PutJob {
        id: job_id(name),
        job: Arc::new(job),
        source: JobSource::Api,
        uid: JobUid::from_bits(11),
        provided: Precondition::Any,
    });
}

/// A node renews the locks that it holds. The lock of an event expires, so that events do not add up.
#[test]
fn locks_of_events_are_not_renewed() {
    let mut node = TestNode::new(0);
    let holder = RunId::from_key(START, "seven");
    let held = LockName::parse("#cronhold/loader/").expect("a name");
    let once = LockName::of_event("e1").expect("a name");
    node.request(Command::AcquireLock { lock: held.clone(), holder, ttl: Span::from_millis(600) });
    let pause = Box::new(Command::Pause { job: None, why: String::new(), until: None });
    assert_eq!(node.request(Command::Event { once: once.clone(), holder, command: pause }), CommandReply::Done);
    assert!(node.record(RecordKey::Lock(once.clone())).is_some(), "other nodes see that the event was handled");
    for _ in 0..16 {
        node.pass(Span::from_secs(60));
    }
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
        let run = Command::Run { job: job.clone(), args: BTreeMap::new(), id, at: None, stop: None };
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
    let pause = || Command::Pause { job: None, why: String::new(), until: None };
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
    let run = Command::Run {
        job: JobId::parse("j").expect("an id"),
        args: BTreeMap::new(),
        id: RunId::MIN,
        at: None,
        stop: None,
    };
    assert!(matches!(node.try_request(run), Err(RequestError::Failed(Fault::Unreadable(_)))));
    assert_eq!(node.request(Command::Pause { job: None, why: String::new(), until: None }), CommandReply::Done);
    assert_eq!((node.events(), node.handle.counters().unreadable), (vec![format!("unreadable {key}")], 1));
}

fn job(name: &str) -> JobId {
    JobId::parse(name).expect("an id")
}

fn put_unscheduled(name: &str) -> Command {
    let definition = Arc::new(Job::new(Program::Noop { duration: Span::ZERO }));
    let (source, uid, provided) = (JobSource::Api, JobUid::from_bits(1), Precondition::Any);
    Command::PutJob { id: job(name), job: definition, source, uid, provided }
}

fn run(name: &str, number: u32) -> Command {
    let id = RunId::from_key(START, &format!("{name} {number}"));
    Command::Run { job: job(name), args: BTreeMap::new(), id, at: None, stop: None }
}

/// Another command that needs the record would fail too, but the store works, and other jobs must not wait.
#[test]
fn contended_record_delays_only_its_own_command() {
    let mut node = TestNode::new(0);
    node.pass(Span::from_secs(1));
    for name in ["hot", "cold"] {
        node.request(put_unscheduled(name));
    }
    let contend = |node: &TestNode, times| {
        *node.contended.lock().expect("no panic") = Some((RecordKey::JobState(job("hot")), times));
    };
    contend(&node, 20);
    let handle = node.handle.clone();
    let mut hot = pin!(handle.request(Actor::Operator("anna".to_owned()), run("hot", 1)));
    node.until(|node, context| {
        assert!(hot.as_mut().poll(context).is_pending(), "it has lost a few conflicts only");
        let left = node.contended.lock().expect("no panic").as_ref().map_or(0, |(_, left)| *left);
        (left <= 8).then_some(())
    });
    assert!(matches!(node.request(run("cold", 1)), CommandReply::Run { .. }), "the node goes on with other jobs");
    let reply = node.until(|_, context| match hot.as_mut().poll(context) {
        Poll::Ready(reply) => Some(reply),
        Poll::Pending => None,
    });
    assert!(matches!(reply, Ok(CommandReply::Run { .. })), "{reply:?}");
    // A request that never succeeds is refused after some seconds.
    contend(&node, u32::MAX);
    assert_eq!(node.try_request(run("hot", 2)), Err(RequestError::Contended));
    assert_eq!(node.events(), Vec::<String>::new(), "the store was never unavailable");
}

/// A client that gets no reply sends its request again, to another node.
#[test]
fn request_with_a_key_is_carried_out_once_by_two_nodes() {
    let mut node = TestNode::new(0);
    node.request(put_unscheduled("j"));
    let (store, clock, entropy) =
        (Arc::new(node.store.clone()), Arc::clone(&node.time), Arc::clone(&node.ports_under_test));
    let (executor, other) = CommandExecutor::new(store, clock, entropy, world());
    let mut working = pin!(executor.run());
    let anna = || Actor::Operator("anna".to_owned());
    for key in 0..20 {
        let keyed = |number| {
            let key = LockName::of_request(&key.to_string()).expect("a name");
            Command::Keyed { key, command: Box::new(run("j", number)) }
        };
        let here = node.handle.clone();
        let mut one = pin!(here.request(anna(), keyed(2 * key)));
        let mut two = pin!(other.request(anna(), keyed(2 * key + 1)));
        let (mut first, mut second) = (None, None);
        node.until(|_, context| {
            let _ = working.as_mut().poll(context);
            if first.is_none() {
                first = ready(one.as_mut().poll(context));
            }
            if second.is_none() {
                second = ready(two.as_mut().poll(context));
            }
            (first.is_some() && second.is_some()).then_some(())
        });
        assert_eq!(first, second, "both get the same run");
    }
}

fn ready(reply: Poll<Result<CommandReply, RequestError>>) -> Option<CommandReply> {
    match reply {
        Poll::Ready(reply) => Some(reply.expect("accepted")),
        Poll::Pending => None,
    }
}

/// Everything of a removed job, of args that come once, and of nodes that come once is deleted after its time, also
/// while the node that walks has just started.
#[test]
fn nothing_of_removed_jobs_and_lost_nodes_is_kept_for_ever() {
    let mut node = TestNode::new(0);
    node.pass(Span::from_secs(1));
    for name in ["stays", "goes"] {
        let mut definition = Job::new(Program::Noop { duration: Span::ZERO });
        let part = Param { default: Some("1".to_owned()), ..Param::default() };
        definition.params = NameMap::from([("part".to_owned(), part)]);
        let (source, uid, provided) = (JobSource::Api, JobUid::from_bits(1), Precondition::Any);
        node.request(Command::PutJob { id: job(name), job: Arc::new(definition), source, uid, provided });
        node.request(run(name, 1));
    }
    let stranger = NodeRecord { gone: START, ..NodeRecord::new(NodeId::from_bits(9), "nine", 1, START) };
    let mut beat = node.store.beat(&stranger, &[]);
    assert!(beat.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    drop(beat);
    for name in ["stays", "goes"] {
        let id = RunId::from_key(START, &format!("{name} 1"));
        let handle = node.handle.clone();
        let ended = ProgramReport::Ended(ExitOutcome::SUCCESS);
        let mut report = pin!(handle.report(id, ended));
        node.until(|_, context| report.as_mut().poll(context).is_ready().then_some(()));
        node.until(|node, _| match node.record(RecordKey::Run(id)) {
            Some(Record::Run(run)) => run.state.is_finished().then_some(()),
            other => panic!("{other:?}"),
        });
    }
    let remove = Command::RemoveJob { id: job("goes"), source: JobSource::Api, provided: Precondition::Any };
    node.request(remove);
    let there = |node: &TestNode, name: &str| {
        let keys = [
            RecordKey::Run(RunId::from_key(START, &format!("{name} 1"))),
            RecordKey::JobState(job(name)),
            RecordKey::Identity(job(name), [("part".to_owned(), "1".to_owned())].into_iter().collect()),
        ];
        keys.map(|key| node.record(key).is_some())
    };
    let is_stranger_there = |node: &TestNode| node.record(RecordKey::Node(NodeId::from_bits(9))).is_some();
    node.days(6);
    node.pass(Span::from_secs(90));
    assert_eq!((there(&node, "goes"), is_stranger_there(&node)), ([true; 3], true));
    node.days(2);
    node.until(|node, _| (!is_stranger_there(node)).then_some(()));
    node.days(23);
    node.until(|node, _| (there(node, "goes") == [false; 3]).then_some(()));
    assert_eq!(there(&node, "stays"), [true, true, false], "a job keeps its runs, and outcomes for a month");
    assert!(node.record(RecordKey::Node(NODE)).is_some());
}

/// The walk through outputs meets the run every ten minutes. That is no reason to stop working with the store.
#[test]
fn unreadable_run_does_not_stop_expiry_and_the_store_stays_available() {
    let mut node = TestNode::new(0);
    node.pass(Span::from_secs(1));
    let (bad, orphan) = (RunId::from_key(START, "bad"), RunId::from_key(START.plus(Span::from_secs(1)), "orphan"));
    let now = |pending: Pin<Box<dyn Future<Output = Result<u64, Fault>> + Send + '_>>| {
        let mut pending = pending;
        assert!(pending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    };
    for run in [bad, orphan] {
        now(node.store.append(run, 0, b"x"));
    }
    *node.unreadable.lock().expect("no panic") = Some(RecordKey::Run(bad));
    node.pass(Span::from_secs(630));
    assert_eq!(node.events(), [format!("unreadable {}", RecordKey::Run(bad))]);
    let mut left = node.store.outputs(None, 10);
    let Poll::Ready(left) = left.as_mut().poll(&mut Context::from_waker(Waker::noop())) else { panic!("no answer") };
    assert_eq!(left, Ok(vec![bad]), "only the output of the unreadable run is kept");
}

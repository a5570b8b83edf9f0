//! A node on a store that others share, in a time that the test moves: what it renews, and what it says of its clock.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use cronhold_core::command::{Command, Provided};
use cronhold_core::decision::Answer;
use cronhold_core::job::{Job, Program};
use cronhold_core::record::{Actor, Key, LockName, Node, Record, Source};
use cronhold_core::{JobId, JobUid, NodeId, RunId, State, World};
use cronhold_engine::{Clerk, Clock, Engine, Entropy, Feed, Handle, News, NoPrograms, Options, Ports, Refused};
use cronhold_schedule::{Instant, Span, Zone, Zones};
use cronhold_store::{Committed, Fault, MemoryStore, Pending, Refusal, Store, Unit, Wrapper};

const START: Instant = Instant::from_secs(1_800_000_000);
const NODE: NodeId = NodeId::from_bits(7);
/// Time moves in such steps.
const STEP: Span = Span::from_millis(50);
/// What did not come within so many steps never comes.
const STEPS_MAX: usize = 2_000;

/// The time since the test began, and how far the clock on the wall is off.
#[derive(Debug, Default)]
struct Time {
    passed: AtomicU64,
    ahead: AtomicI64,
}

impl Time {
    fn passed(&self) -> Span {
        Span::from_micros(self.passed.load(Ordering::Relaxed))
    }
}

impl Clock for Time {
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

/// Chance that is none, nobody who runs programs, and someone who writes down what is said of the clock.
#[derive(Debug, Default)]
struct Around {
    drawn: AtomicU64,
    said: Mutex<Vec<String>>,
}

impl Entropy for Around {
    fn bits(&self) -> u128 {
        u128::from(self.drawn.fetch_add(1, Ordering::Relaxed))
    }
}

impl Feed for Around {
    fn tell(&self, news: &News<'_>) {
        if let News::Skew { is_off, is_ahead, by } = news {
            let way = if *is_ahead { "ahead" } else { "behind" };
            let said = if *is_off { format!("{by} {way}") } else { "right".to_owned() };
            self.said.lock().expect("no panic").push(said);
        }
    }
}

/// A store that has no room for a while.
#[derive(Debug)]
struct Full {
    store: MemoryStore,
    is_full: Arc<AtomicBool>,
}

impl Full {
    fn fault(&self) -> Option<Fault> {
        self.is_full.load(Ordering::Relaxed).then(|| Fault::ReadOnly("no room".to_owned()))
    }
}

impl Wrapper for Full {
    fn inside(&self) -> &dyn Store {
        &self.store
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<Committed, Refusal>>> {
        match self.fault() {
            Some(fault) => Box::pin(async move { vec![Err(fault.into()); units.len()] }),
            None => self.store.commit(units),
        }
    }

    fn beat<'a>(&'a self, node: &'a Node, locks: &'a [(LockName, RunId)]) -> Pending<'a, Result<Vec<LockName>, Fault>> {
        match self.fault() {
            Some(fault) => Box::pin(async { Err(fault) }),
            None => self.store.beat(node, locks),
        }
    }
}

fn world() -> World {
    World::new(Arc::new(Zones::bundled()), "test".into(), Zone::utc())
}

/// A node, and what it lives in.
struct Rig {
    time: Arc<Time>,
    around: Arc<Around>,
    store: MemoryStore,
    is_full: Arc<AtomicBool>,
    handle: Handle,
    engine: Pin<Box<dyn Future<Output = ()>>>,
}

impl Rig {
    fn new(ahead: i64) -> Self {
        let time = Arc::new(Time::default());
        time.ahead.store(ahead, Ordering::Relaxed);
        let of_store = Arc::clone(&time);
        let store = MemoryStore::new(Arc::new(move || START.plus(of_store.passed())));
        let around = Arc::new(Around::default());
        let is_full = Arc::new(AtomicBool::new(false));
        let ports = Ports {
            clock: Arc::clone(&time) as _,
            entropy: Arc::clone(&around) as _,
            store: Arc::new(Full { store: store.clone(), is_full: Arc::clone(&is_full) }),
            outside: Arc::new(NoPrograms),
            feed: Arc::clone(&around) as _,
        };
        let (engine, handle) = Engine::new(ports, Options::new(NODE, "seven"), world());
        let engine = Box::pin(async move { engine.run().await.expect("the store works") });
        Self { time, around, store, is_full, handle, engine }
    }

    /// Lets time pass until something is there.
    fn until<T>(&mut self, mut look: impl FnMut(&Self, &mut Context<'_>) -> Option<T>) -> T {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..STEPS_MAX {
            assert!(self.engine.as_mut().poll(&mut context).is_pending(), "nobody has stopped it");
            if let Some(found) = look(self, &mut context) {
                return found;
            }
            self.time.passed.fetch_add(STEP.micros(), Ordering::Relaxed);
        }
        panic!("nothing came")
    }

    fn pass(&mut self, span: Span) {
        let end = self.time.passed().plus(span);
        self.until(|rig, _| (rig.time.passed() >= end).then_some(()));
    }

    fn ask(&mut self, command: Command) -> Answer {
        self.try_to_ask(command).expect("it can be done")
    }

    fn try_to_ask(&mut self, command: Command) -> Result<Answer, Refused> {
        let handle = self.handle.clone();
        let mut asking = pin!(handle.ask(Actor::Operator("anna".to_owned()), command));
        self.until(|_, context| match asking.as_mut().poll(context) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        })
    }

    fn record(&self, key: Key) -> Option<Record> {
        let keys = [key];
        let mut loading = self.store.load(&keys);
        match loading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(found) => found.expect("the store works").remove(0).map(|stored| stored.record),
            Poll::Pending => panic!("memory answers at once"),
        }
    }

    fn said(&self) -> Vec<String> {
        self.around.said.lock().expect("no panic").clone()
    }
}

/// What a node holds is renewed for as long as it is there; the lock of an event runs out, so that the same event can come
/// again.
#[test]
fn locks_of_events_are_not_renewed() {
    let mut rig = Rig::new(0);
    let holder = RunId::from_key(START, "seven");
    let held = LockName::parse("#cronhold/loader/").expect("a name");
    let once = LockName::of_event("e1").expect("a name");
    rig.ask(Command::Hold { lock: held.clone(), holder, ttl: Span::from_millis(600) });
    let pause = Box::new(Command::Pause { job: None, why: String::new() });
    assert_eq!(rig.ask(Command::Event { once: once.clone(), holder, command: pause }), Answer::Done);
    assert!(rig.record(Key::Lock(once.clone())).is_some(), "others see that it is done");
    rig.pass(Span::from_secs(3));
    assert!(rig.record(Key::Lock(held)).is_some());
    assert_eq!(rig.record(Key::Lock(once)), None);
}

#[test]
fn says_when_its_clock_is_off_and_when_it_is_not() {
    let mut rig = Rig::new(-1_500_000);
    let skew = |rig: &Rig| match rig.record(Key::Node(NODE)) {
        Some(Record::Node(node)) => node.skew,
        other => panic!("{other:?}"),
    };
    rig.pass(Span::from_secs(10));
    assert_eq!((rig.said(), skew(&rig)), (vec!["1s500ms behind".to_owned()], Some(-1_500_000)));
    rig.time.ahead.store(20_000, Ordering::Relaxed);
    rig.pass(Span::from_secs(10));
    assert_eq!((rig.said().last().map(String::as_str), skew(&rig)), (Some("right"), Some(20_000)));
    assert_eq!(rig.said().len(), 2, "each is said once");
}

/// What a clerk makes is started when the node hears of it. The run itself says only when it is looked at again, which is
/// a minute later.
#[test]
fn what_a_clerk_makes_is_started_at_once() {
    let mut rig = Rig::new(0);
    rig.pass(Span::from_secs(1));
    let (store, clock, entropy) = (Arc::new(rig.store.clone()), Arc::clone(&rig.time), Arc::clone(&rig.around));
    let (clerk, handle) = Clerk::new(store, clock, entropy, world());
    let job = JobId::parse("j").expect("an id");
    let id = RunId::from_key(START, "asked for");
    let asking = async {
        let anna = || Actor::Operator("anna".to_owned());
        let definition = Arc::new(Job::new(Program::Noop { duration: Span::ZERO }));
        let (source, uid, provided) = (Source::Api, JobUid::from_bits(1), Provided::Any);
        let put = Command::PutJob { id: job.clone(), job: definition, source, uid, provided };
        handle.ask(anna(), put).await.expect("it is put");
        let run = Command::Run { job: job.clone(), args: BTreeMap::new(), id, at: None };
        handle.ask(anna(), run).await.expect("it is made");
    };
    let (mut working, mut asking) = (pin!(clerk.run()), pin!(asking));
    rig.until(|_, context| {
        let _ = working.as_mut().poll(context);
        matches!(asking.as_mut().poll(context), Poll::Ready(())).then_some(())
    });
    let made = rig.time.passed();
    rig.until(|rig, _| match rig.record(Key::Run(id)) {
        Some(Record::Run(run)) => (run.state == State::Starting).then_some(()),
        other => panic!("{other:?}"),
    });
    let late = Span::from_micros(rig.time.passed().micros() - made.micros());
    assert!(late < Span::from_secs(5), "{late}");
}

/// Beats fail more often than anything else is tried. Whoever asks is told all the same, and within seconds.
#[test]
fn who_asks_while_nothing_can_be_written_is_told() {
    let mut rig = Rig::new(0);
    let pause = || Command::Pause { job: None, why: String::new() };
    rig.pass(Span::from_secs(5));
    rig.is_full.store(true, Ordering::Relaxed);
    rig.pass(Span::from_secs(60));
    for _ in 0..3 {
        let asked = rig.time.passed();
        assert_eq!(rig.try_to_ask(pause()), Err(Refused::Failed(Fault::ReadOnly("no room".to_owned()))));
        assert!(rig.time.passed().minus(asked) <= Span::from_secs(6), "it waited {}", rig.time.passed().minus(asked));
    }
    rig.is_full.store(false, Ordering::Relaxed);
    assert_eq!(rig.ask(pause()), Answer::Done);
}

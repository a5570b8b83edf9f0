//! A store in memory that Cronken shares, and nodes of Cronhold on it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use cronhold_core::command::{Command, Precondition};
use cronhold_core::record::{Actor, JobRecord, JobSource, Record, RecordKey, Run};
use cronhold_core::{DecisionContext, Job, JobId, NodeId};
use cronhold_engine::{Engine, EntropySource, MachineClock, NoPrograms, NodeHandle, NodePorts, Options};
use cronhold_schedule::{Instant, Span, Zone, ZoneRegistry};
use cronhold_store::lock_mutex;
use cronhold_store::{
    DefinitionRules, DefinitionStatus, DefinitionUpdate, EventPlace, Fault, MemoryStore, Pending, Query, RunQuery,
    SharedDefinition, SharedEvent, SharedRun, SharedStore, Store, Wrapper,
};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use crate::event_handler::{EventHandler, StoreTimeCache};
use crate::new_job_uid;
use crate::reconciler::Reconciler;
use crate::report::{EventOutcome, FollowerObserver, InvalidDefinition, SharedJobReport};
use crate::{CronkenFollower, ReconcileRequests};

/// How long a test waits for something.
const DEADLINE: Span = Span::from_secs(30);
/// How often it checks meanwhile.
const CHECK_EVERY: Span = Span::from_millis(10);

/// The text of a definition when it was settled, and the rules by which it was read.
type SettledText = (String, DefinitionRules);

/// What Cronken shares with the nodes.
#[derive(Debug, Default)]
struct SharedBoard {
    /// Definitions by name: the present text and the settled one.
    definitions: BTreeMap<String, (Option<String>, Option<SettledText>)>,
    inboxes: Vec<Arc<EventInbox>>,
    sent: Vec<String>,
    has_foreign: bool,
}

#[derive(Debug, Default)]
struct EventInbox {
    events: Mutex<VecDeque<SharedEvent>>,
    arrived: Notify,
}

/// The store, as Cronken's programs see it.
#[derive(Clone)]
pub(super) struct SharedTestStore {
    store: MemoryStore,
    board: Arc<Mutex<SharedBoard>>,
}

/// The store, as one node sees it.
struct NodeStore {
    inside: MemoryStore,
    board: Arc<Mutex<SharedBoard>>,
    inbox: Arc<EventInbox>,
}

impl fmt::Debug for NodeStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeStore")
    }
}

impl Wrapper for NodeStore {
    fn inside(&self) -> &dyn Store {
        &self.inside
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }
}

impl SharedStore for NodeStore {
    fn has_foreign_nodes(&self) -> bool {
        lock_mutex(&self.board).has_foreign
    }

    fn events(&self) -> Pending<'_, Vec<SharedEvent>> {
        Box::pin(async {
            loop {
                let events: Vec<SharedEvent> = lock_mutex(&self.inbox.events).drain(..).collect();
                if !events.is_empty() {
                    return events;
                }
                self.inbox.arrived.notified().await;
            }
        })
    }

    fn send<'a>(&'a self, event: &'a str) -> Pending<'a, Result<(), Fault>> {
        Box::pin(async move {
            publish(&self.board, event);
            Ok(())
        })
    }

    fn forms<'a>(&'a self, names: Option<&'a [String]>) -> Pending<'a, Result<Vec<SharedDefinition>, Fault>> {
        Box::pin(async move {
            let board = lock_mutex(&self.board);
            let names = names.map_or_else(|| board.definitions.keys().cloned().collect(), <[String]>::to_vec);
            Ok(names.into_iter().map(|name| board.form(name)).collect())
        })
    }

    fn settle<'a>(&'a self, forms: &'a [DefinitionUpdate]) -> Pending<'a, Result<Vec<bool>, Fault>> {
        Box::pin(async move {
            let mut board = lock_mutex(&self.board);
            Ok(forms.iter().map(|form| board.settle(form)).collect())
        })
    }

    /// The follower does not read runs.
    fn foreign_runs<'a>(&'a self, _: Option<&'a str>, _: usize) -> Pending<'a, Result<Vec<SharedRun>, Fault>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

impl SharedBoard {
    fn form(&self, name: String) -> SharedDefinition {
        let (text, settled) = self.definitions.get(&name).cloned().unwrap_or_default();
        let standing = match &settled {
            None => DefinitionStatus::New,
            Some((settled, reading)) if Some(settled) == text.as_ref() => DefinitionStatus::Settled(*reading),
            Some(_) => DefinitionStatus::Changed,
        };
        SharedDefinition { name, text, standing }
    }

    fn settle(&mut self, form: &DefinitionUpdate) -> bool {
        if self.form(form.name.clone()).text != form.found {
            return false;
        }
        match &form.text {
            Some(text) => {
                let settled = Some((text.clone(), form.reading));
                self.definitions.insert(form.name.clone(), (Some(text.clone()), settled));
            }
            None => {
                self.definitions.remove(&form.name);
            }
        }
        true
    }
}

fn publish(board: &Mutex<SharedBoard>, event: &str) {
    let mut board = lock_mutex(board);
    let index = board.sent.iter().filter(|sent| *sent == event).count() as u64;
    board.sent.push(event.to_owned());
    let place = Some(EventPlace { mark: "a mark".to_owned(), index, marked_at: now() });
    for inbox in &board.inboxes {
        lock_mutex(&inbox.events).push_back(SharedEvent { text: event.to_owned(), place: place.clone() });
        inbox.arrived.notify_one();
    }
}

impl SharedTestStore {
    pub(super) fn new(has_foreign: bool) -> Self {
        let board = Arc::new(Mutex::new(SharedBoard { has_foreign, ..SharedBoard::default() }));
        Self { store: MemoryStore::new(Arc::new(now)), board }
    }

    /// Cronken's nodes come or go.
    pub(super) fn set_foreign(&self, has_foreign: bool) {
        lock_mutex(&self.board).has_foreign = has_foreign;
    }

    /// Another program writes a definition, or removes it.
    pub(super) fn write(&self, name: &str, text: Option<&str>) {
        lock_mutex(&self.board).definitions.entry(name.to_owned()).or_default().0 = text.map(str::to_owned);
    }

    /// The present definition of a job.
    pub(super) fn read(&self, name: &str) -> Option<serde_json::Value> {
        let text = lock_mutex(&self.board).definitions.get(name)?.0.clone()?;
        Some(serde_json::from_str(&text).expect("JSON"))
    }

    /// All definitions disappear at once.
    pub(super) fn lose_definitions(&self) {
        lock_mutex(&self.board).definitions.values_mut().for_each(|(text, _)| *text = None);
    }

    /// Another program sends an event.
    pub(super) fn send(&self, action: &str, args: &serde_json::Value) {
        publish(&self.board, &serde_json::json!({"action": action, "args": args}).to_string());
    }

    /// Another program sends any text.
    pub(super) fn send_text(&self, text: &str) {
        publish(&self.board, text);
    }

    /// An event as nodes receive it that was sent some time ago, the first with its text.
    pub(super) fn event_sent_before(age: Span, action: &str, args: &serde_json::Value) -> SharedEvent {
        let place = EventPlace { mark: "a mark".to_owned(), index: 0, marked_at: now().minus(age) };
        SharedEvent { text: serde_json::json!({"action": action, "args": args}).to_string(), place: Some(place) }
    }

    /// All events that were sent.
    pub(super) fn sent(&self) -> Vec<String> {
        lock_mutex(&self.board).sent.clone()
    }

    pub(super) async fn job(&self, id: &str) -> Option<Arc<JobRecord>> {
        match self.load(RecordKey::Job(job_id(id))).await? {
            Record::Job(job) => Some(job),
            _ => None,
        }
    }

    pub(super) async fn is_paused(&self, id: &str) -> bool {
        matches!(self.load(RecordKey::JobState(job_id(id))).await, Some(Record::JobState(state)) if state.pauses.is_paused())
    }

    pub(super) async fn is_all_paused(&self) -> bool {
        matches!(self.load(RecordKey::Pause).await, Some(Record::Pause(pauses)) if pauses.is_paused())
    }

    pub(super) async fn runs(&self) -> Vec<Arc<Run>> {
        let page = self.store.page(&Query::Runs(RunQuery::default()), 100).await.expect("the store works");
        let runs = page.records.into_iter().filter_map(|stored| match stored.record {
            Record::Run(run) => Some(run),
            _ => None,
        });
        runs.collect()
    }

    pub(super) async fn job_count(&self) -> usize {
        let page = self.store.page(&Query::Jobs { after: None }, 100_000).await.expect("the store works");
        page.records.len()
    }

    async fn load(&self, key: RecordKey) -> Option<Record> {
        let found = self.store.load(&[key]).await.expect("the store works");
        found.into_iter().flatten().next().map(|stored| stored.record)
    }
}

/// A node on the shared store.
pub(super) struct TestNode {
    pub(super) handle: NodeHandle,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: TestClock,
    pub(super) reconciler: Reconciler,
    pub(super) requests: Arc<ReconcileRequests>,
    pub(super) observer: Arc<RecordedReports>,
    node_id: NodeId,
    engine: JoinHandle<()>,
}

impl TestNode {
    pub(super) async fn start(number: u128, shared: &SharedTestStore) -> Self {
        let inbox = Arc::<EventInbox>::default();
        lock_mutex(&shared.board).inboxes.push(Arc::clone(&inbox));
        let node_store = NodeStore { inside: shared.store.clone(), board: Arc::clone(&shared.board), inbox };
        let store: Arc<dyn Store> = Arc::new(node_store);
        let (requests, zones) = (Arc::<ReconcileRequests>::default(), Arc::new(ZoneRegistry::bundled()));
        let ports = NodePorts {
            clock: Arc::new(TestClock),
            entropy: Arc::new(CountingEntropy),
            store: Arc::clone(&store),
            programs: Arc::new(NoPrograms),
            feed: Arc::clone(&requests) as _,
        };
        let node_id = NodeId::from_bits(number);
        let world = DecisionContext::new(Arc::clone(&zones), "test".into(), Zone::utc());
        let (engine, handle) = Engine::new(ports, Options::new(node_id, format!("node {number}")), world);
        let engine = tokio::spawn(async move { engine.run().await.expect("the store works") });
        let reconciler = Reconciler::new(Arc::clone(&store), handle.clone(), zones);
        let observer = Arc::<RecordedReports>::default();
        let node = Self { handle, store, clock: TestClock, reconciler, requests, observer, node_id, engine };
        node.until(async || node.is_there().await).await;
        node
    }

    /// Starts the follower, and waits until it has reconciled all jobs for the first time.
    pub(super) async fn follow(&self) {
        let follower = CronkenFollower {
            store: Arc::clone(&self.store),
            node: self.handle.clone(),
            node_id: self.node_id,
            zones: Arc::new(ZoneRegistry::bundled()),
            requests: Arc::clone(&self.requests),
            observer: Arc::clone(&self.observer) as _,
        };
        let (ready, is_ready) = oneshot::channel();
        tokio::spawn(async move { follower.run(&TestClock, ready).await });
        is_ready.await.expect("the follower runs");
    }

    pub(super) fn event_handler(&self) -> EventHandler {
        EventHandler {
            store: Arc::clone(&self.store),
            node: self.handle.clone(),
            node_id: self.node_id,
            zones: Arc::new(ZoneRegistry::bundled()),
            requests: Arc::clone(&self.requests),
            observer: Arc::clone(&self.observer) as _,
            store_time: StoreTimeCache::default(),
        }
    }

    /// Waits until a condition holds.
    pub(super) async fn until(&self, holds: impl AsyncFn() -> bool) {
        let deadline = self.clock.uptime().plus(DEADLINE);
        while !holds().await {
            assert!(self.clock.uptime() < deadline, "the condition does not hold in time; {:?}", self.reports());
            self.clock.sleep(CHECK_EVERY).await;
        }
    }

    pub(super) async fn ask(&self, command: Command) {
        self.ask_as(Actor::Operator("anna".to_owned()), command).await;
    }

    pub(super) async fn ask_as(&self, actor: Actor, command: Command) {
        self.handle.request(actor, command).await.expect("the node accepts it");
    }

    /// Creates or changes a job, as an operator does.
    pub(super) async fn put(&self, id: &str, job: Job, source: JobSource) {
        let (id, uid) = (job_id(id), new_job_uid(&self.handle));
        self.ask(Command::PutJob { id, job: Arc::new(job), source, uid, provided: Precondition::Any }).await;
    }

    pub(super) const fn node_id(&self) -> NodeId {
        self.node_id
    }

    /// All reports so far.
    pub(super) fn reports(&self) -> Vec<SharedJobReport> {
        lock_mutex(&self.observer.reports).clone()
    }

    /// The reasons for which events were ignored.
    pub(super) fn ignored_events(&self) -> Vec<String> {
        let reasons = self.reports().into_iter().filter_map(|report| match report {
            SharedJobReport::Event { outcome: EventOutcome::Ignored { reason }, .. } => Some(reason),
            _ => None,
        });
        reasons.collect()
    }

    /// Ends without a farewell.
    pub(super) fn crash(&self) {
        self.engine.abort();
    }

    async fn is_there(&self) -> bool {
        let nodes = cronhold_store::all_nodes(&*self.store).await.expect("the store works");
        nodes.iter().any(|node| node.id == self.node_id)
    }
}

/// Keeps all reports.
#[derive(Debug, Default)]
pub(super) struct RecordedReports {
    reports: Mutex<Vec<SharedJobReport>>,
    invalid: Mutex<Vec<InvalidDefinition>>,
}

impl FollowerObserver for RecordedReports {
    fn on_report(&self, report: &SharedJobReport) {
        lock_mutex(&self.reports).push(report.clone());
    }

    fn set_invalid_definitions(&self, invalid: Vec<InvalidDefinition>) {
        *lock_mutex(&self.invalid) = invalid;
    }

    fn on_commit(&self) {}
}

/// The clock of the test's executor.
#[derive(Debug, Clone, Copy)]
pub(super) struct TestClock;

#[expect(clippy::disallowed_methods, reason = "the nodes of these tests run in real time")]
static START: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);

impl MachineClock for TestClock {
    fn now(&self) -> Instant {
        now()
    }

    fn uptime(&self) -> Span {
        // Some time has passed at the start, so that tests can look back.
        Span::from_secs(3_600)
            .plus(Span::from_micros(u64::try_from(START.elapsed().as_micros()).expect("a short test")))
    }

    fn sleep(&self, span: Span) -> Pending<'_, ()> {
        Box::pin(tokio::time::sleep(Duration::from_micros(span.micros())))
    }
}

#[expect(clippy::disallowed_methods, reason = "the nodes of these tests run in real time")]
fn now() -> Instant {
    Instant::from_micros(jiff::Timestamp::now().as_microsecond())
}

/// Bits that never repeat within a test.
#[derive(Debug)]
struct CountingEntropy;

impl EntropySource for CountingEntropy {
    fn bits(&self) -> u128 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Both halves change, because ids keep only some of the bits.
        let bits = u128::from(NEXT.fetch_add(1, Ordering::Relaxed));
        bits << 64 | bits
    }
}

pub(super) fn in_executor(test: impl AsyncFnOnce()) {
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("an executor");
    executor.block_on(test());
}

pub(super) fn job_id(id: &str) -> JobId {
    JobId::parse(id).expect("an id")
}

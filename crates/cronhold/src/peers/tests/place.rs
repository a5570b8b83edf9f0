//! A store in memory that other programs share, and nodes on it: what the tests of peers stand on.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cronhold_core::command::{Command, Provided};
use cronhold_core::record::{Actor, JobRecord, Key, Record, Run, Source};
use cronhold_core::{Job, JobId, JobUid, NodeId, World};
use cronhold_engine::{Clock, Engine, Entropy, Handle, NoPrograms, Options, Ports};
use cronhold_schedule::{Span, Zone, Zones};
use cronhold_store::{
    Fault, MemoryStore, Pending, Query, Reading, RunQuery, Settle, Shared, SharedForm, SharedRun, Standing, Store,
    Wrapper,
};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::super::bell::Bell;
use super::super::follow::Peers;
use super::super::look::Looker;
use crate::chance::SystemEntropy;
use crate::clock::{self, SystemClock};
use crate::job_files::Shelf;
use crate::log::{Log, Weight};

/// A test gives up after this.
const DEADLINE: Span = Span::from_secs(30);
/// How often it looks meanwhile.
const LOOK: Span = Span::from_millis(10);

/// A text as it was settled, and by whose rules it was read.
type Settled = (String, Reading);

/// What other programs share.
#[derive(Debug, Default)]
struct Board {
    /// Texts by name, and as they were settled and read.
    forms: BTreeMap<String, (Option<String>, Option<Settled>)>,
    inboxes: Vec<Arc<Inbox>>,
    sent: Vec<String>,
    has_foreign: bool,
}

#[derive(Debug, Default)]
struct Inbox {
    events: Mutex<VecDeque<String>>,
    came: Notify,
}

/// The store, for those who share it.
#[derive(Clone)]
pub(super) struct Place {
    store: MemoryStore,
    board: Arc<Mutex<Board>>,
}

/// A node's own way to it.
struct Door {
    inside: MemoryStore,
    board: Arc<Mutex<Board>>,
    inbox: Arc<Inbox>,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Door")
    }
}

impl Wrapper for Door {
    fn inside(&self) -> &dyn Store {
        &self.inside
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}

impl Shared for Door {
    fn has_foreign_nodes(&self) -> bool {
        lock(&self.board).has_foreign
    }

    fn events(&self) -> Pending<'_, Vec<String>> {
        Box::pin(async {
            loop {
                let events: Vec<String> = lock(&self.inbox.events).drain(..).collect();
                if !events.is_empty() {
                    return events;
                }
                self.inbox.came.notified().await;
            }
        })
    }

    fn send<'a>(&'a self, event: &'a str) -> Pending<'a, Result<(), Fault>> {
        Box::pin(async move {
            publish(&self.board, event);
            Ok(())
        })
    }

    fn forms<'a>(&'a self, names: Option<&'a [String]>) -> Pending<'a, Result<Vec<SharedForm>, Fault>> {
        Box::pin(async move {
            let board = lock(&self.board);
            let names = names.map_or_else(|| board.forms.keys().cloned().collect(), <[String]>::to_vec);
            Ok(names.into_iter().map(|name| board.form(name)).collect())
        })
    }

    fn settle<'a>(&'a self, forms: &'a [Settle]) -> Pending<'a, Result<Vec<bool>, Fault>> {
        Box::pin(async move {
            let mut board = lock(&self.board);
            Ok(forms.iter().map(|form| board.settle(form)).collect())
        })
    }

    /// Whoever follows others does not look at what they have run.
    fn foreign_runs<'a>(&'a self, _: Option<&'a str>, _: usize) -> Pending<'a, Result<Vec<SharedRun>, Fault>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

impl Board {
    fn form(&self, name: String) -> SharedForm {
        let (text, settled) = self.forms.get(&name).cloned().unwrap_or_default();
        let standing = match &settled {
            None => Standing::New,
            Some((settled, reading)) if Some(settled) == text.as_ref() => Standing::Settled(*reading),
            Some(_) => Standing::Changed,
        };
        SharedForm { name, text, standing }
    }

    fn settle(&mut self, form: &Settle) -> bool {
        if self.form(form.name.clone()).text != form.found {
            return false;
        }
        match &form.text {
            Some(text) => {
                let settled = Some((text.clone(), form.reading));
                self.forms.insert(form.name.clone(), (Some(text.clone()), settled));
            }
            None => {
                self.forms.remove(&form.name);
            }
        }
        true
    }
}

fn publish(board: &Mutex<Board>, event: &str) {
    let mut board = lock(board);
    board.sent.push(event.to_owned());
    for inbox in &board.inboxes {
        lock(&inbox.events).push_back(event.to_owned());
        inbox.came.notify_one();
    }
}

impl Place {
    pub(super) fn new(has_foreign: bool) -> Self {
        let board = Arc::new(Mutex::new(Board { has_foreign, ..Board::default() }));
        Self { store: MemoryStore::new(Arc::new(clock::now)), board }
    }

    /// Somebody says whether nodes of another kind run the same jobs.
    pub(super) fn set_foreign(&self, has_foreign: bool) {
        lock(&self.board).has_foreign = has_foreign;
    }

    /// Another program writes a definition, or removes it.
    pub(super) fn write(&self, name: &str, text: Option<&str>) {
        lock(&self.board).forms.entry(name.to_owned()).or_default().0 = text.map(str::to_owned);
    }

    /// A definition as it stands there.
    pub(super) fn read(&self, name: &str) -> Option<serde_json::Value> {
        let text = lock(&self.board).forms.get(name)?.0.clone()?;
        Some(serde_json::from_str(&text).expect("JSON"))
    }

    /// All definitions are gone at once.
    pub(super) fn lose_definitions(&self) {
        lock(&self.board).forms.values_mut().for_each(|(text, _)| *text = None);
    }

    /// Another program sends an event.
    pub(super) fn send(&self, action: &str, args: &serde_json::Value) {
        publish(&self.board, &serde_json::json!({"action": action, "args": args}).to_string());
    }

    /// Another program sends something.
    pub(super) fn send_text(&self, text: &str) {
        publish(&self.board, text);
    }

    /// What was sent to all.
    pub(super) fn sent(&self) -> Vec<String> {
        lock(&self.board).sent.clone()
    }

    pub(super) async fn job(&self, id: &str) -> Option<Arc<JobRecord>> {
        match self.load(Key::Job(job_id(id))).await? {
            Record::Job(job) => Some(job),
            _ => None,
        }
    }

    pub(super) async fn is_paused(&self, id: &str) -> bool {
        matches!(self.load(Key::JobState(job_id(id))).await, Some(Record::JobState(state)) if state.pauses.is_paused())
    }

    pub(super) async fn is_all_paused(&self) -> bool {
        matches!(self.load(Key::Pause).await, Some(Record::Pause(pauses)) if pauses.is_paused())
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

    async fn load(&self, key: Key) -> Option<Record> {
        let found = self.store.load(&[key]).await.expect("the store works");
        found.into_iter().flatten().next().map(|stored| stored.record)
    }
}

/// A node on it.
pub(super) struct Member {
    pub(super) handle: Handle,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: SystemClock,
    pub(super) looker: Looker,
    pub(super) bell: Arc<Bell>,
    pub(super) shelf: Arc<Shelf>,
    pub(super) log: Log,
    this: NodeId,
    engine: JoinHandle<()>,
    paper: Paper,
}

impl Member {
    pub(super) async fn start(number: u128, place: &Place) -> Self {
        let inbox = Arc::<Inbox>::default();
        lock(&place.board).inboxes.push(Arc::clone(&inbox));
        let door = Door { inside: place.store.clone(), board: Arc::clone(&place.board), inbox };
        let store: Arc<dyn Store> = Arc::new(door);
        let paper = Paper::default();
        let log = Log::new(Weight::Usual, paper.clone());
        let (bell, zones) = (Arc::<Bell>::default(), Arc::new(Zones::bundled()));
        let ports = Ports {
            clock: Arc::new(SystemClock::new().expect("a clock")),
            entropy: Arc::new(SystemEntropy),
            store: Arc::clone(&store),
            outside: Arc::new(NoPrograms),
            feed: Arc::clone(&bell) as _,
        };
        let this = NodeId::from_bits(number);
        let world = World::new(Arc::clone(&zones), "test".into(), Zone::utc());
        let shelf = Arc::new(Shelf::new(Vec::new(), world.clone()));
        let (engine, handle) = Engine::new(ports, Options::new(this, format!("node {number}")), world);
        let engine = tokio::spawn(async move { engine.run().await.expect("the store works") });
        let looker = Looker::new(Arc::clone(&store), handle.clone(), zones);
        let clock = SystemClock::new().expect("a clock");
        let member = Self { handle, store, clock, looker, bell, shelf, log, this, engine, paper };
        member.until(async || member.is_there().await).await;
        member
    }

    /// Follows others from now on.
    pub(super) async fn follow(&self) {
        let peers = Peers {
            store: Arc::clone(&self.store),
            node: self.handle.clone(),
            this: self.this,
            zones: Arc::new(Zones::bundled()),
            shelf: Arc::clone(&self.shelf),
            bell: Arc::clone(&self.bell),
            log: self.log.clone(),
        };
        peers.begin().await;
    }

    /// Waits until something is so.
    pub(super) async fn until(&self, is_so: impl AsyncFn() -> bool) {
        let deadline = self.clock.uptime().plus(DEADLINE);
        while !is_so().await {
            assert!(self.clock.uptime() < deadline, "it was not so in time; {}", self.said());
            self.clock.sleep(LOOK).await;
        }
    }

    pub(super) async fn ask(&self, command: Command) {
        self.handle.ask(Actor::Operator("anna".to_owned()), command).await.expect("it is taken");
    }

    /// Makes or changes a job by hand.
    pub(super) async fn put(&self, id: &str, job: Job, source: Source) {
        let (id, uid) = (job_id(id), JobUid::from_bits(SystemEntropy.bits()));
        self.ask(Command::PutJob { id, job: Arc::new(job), source, uid, provided: Provided::Any }).await;
    }

    pub(super) fn this(&self) -> NodeId {
        self.this
    }

    /// All that was said.
    pub(super) fn said(&self) -> String {
        String::from_utf8_lossy(&lock(&self.paper.0)).into_owned()
    }

    /// Nothing is heard of it any more.
    pub(super) fn vanish(&self) {
        self.engine.abort();
    }

    async fn is_there(&self) -> bool {
        let nodes = cronhold_store::all_nodes(&*self.store).await.expect("the store works");
        nodes.iter().any(|node| node.id == self.this)
    }
}

/// Keeps what is written.
#[derive(Debug, Default, Clone)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn in_executor(test: impl AsyncFnOnce()) {
    let executor = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("an executor");
    executor.block_on(test());
}

pub(super) fn job_id(id: &str) -> JobId {
    JobId::parse(id).expect("an id")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

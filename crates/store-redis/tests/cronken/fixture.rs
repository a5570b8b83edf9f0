//! A server, a store on it and a writer, for tests that inspect keys with plain Redis commands. The store itself is
//! used only through its trait.

use std::cell::Cell;
use std::sync::Arc;

use cronhold_core::decision::{LockRelease, LockTake, RecordChange};
use cronhold_core::record::{Actor, LockName, NodeRecord, Record, RecordKey, RecordVersion, Run, RunOwner, Transition};
use cronhold_core::{JobId, JobUid, NodeId, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::conformance::block_on;
use cronhold_store::{Fault, Store, Unit, UnitReceipt, UnitRefusal};
use cronhold_store_redis::testing::RedisServer;
use cronhold_store_redis::{Options, RedisStore, RedisUrl};
use serde_json::Value;

/// The default namespace.
pub(crate) const NS: &str = "{cronken}";

/// The node that runs everything in these tests.
pub(crate) const NODE: NodeId = NodeId::from_bits(0xabc);

/// Its name.
pub(crate) const HOST: &str = "lyra";

/// A server, a store and a writer.
pub(crate) struct Fixture {
    pub(crate) server: RedisServer,
    pub(crate) store: Arc<RedisStore>,
    writer: u32,
    units: Cell<u64>,
    runs: Cell<u16>,
}

impl Fixture {
    /// A server whose store knows the name of the node.
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// With further URL parameters.
    pub(crate) fn with(params: &str) -> Self {
        let server = RedisServer::start();
        let store = open(&server, params);
        let writer = block_on(store.enroll()).expect("a writer enrolls").0;
        let fixture = Self { server, store, writer, units: Cell::new(0), runs: Cell::new(0) };
        fixture.beat(&[]);
        fixture
    }

    /// The reply to a plain command, as JSON.
    pub(crate) fn command(&self, command: &[&str]) -> Value {
        let args: Vec<&str> = std::iter::once("--json").chain(command.iter().copied()).collect();
        let text = self.server.cli(&args);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{command:?} answered {text:?}: {error}"))
    }

    /// A command on a key of the namespace: `name key …`.
    pub(crate) fn at(&self, command: &str, key: &str, rest: &[&str]) -> Value {
        let key = format!("{NS}:{key}");
        let words: Vec<&str> = [command, &key].into_iter().chain(rest.iter().copied()).collect();
        self.command(&words)
    }

    /// The type of a key; `none` if it does not exist.
    pub(crate) fn kind(&self, key: &str) -> String {
        self.at("TYPE", key, &[]).as_str().expect("a word").to_owned()
    }

    /// The metadata of a run.
    pub(crate) fn rundata(&self, run: RunId) -> Option<Value> {
        let text = self.at("HGET", "rundata", &[&run.to_string()]);
        text.as_str().map(|text| serde_json::from_str(text).expect("metadata is JSON"))
    }

    /// Members of a sorted set with their scores, which are seconds with six decimals. JSON numbers are parsed with a
    /// possible error in the last bit; rounded to microseconds, a score equals what `str::parse` reads from its text.
    pub(crate) fn scores(&self, key: &str) -> Vec<(String, f64)> {
        let found = self.at("ZRANGE", key, &["0", "-1", "WITHSCORES"]);
        let score = |number: &Value| (number.as_f64().expect("a number") * 1e6).round() / 1e6;
        let pair = |pair: &Value| (pair[0].as_str().expect("a text").to_owned(), score(&pair[1]));
        found.as_array().expect("a list").iter().map(pair).collect()
    }

    /// Members of a sorted set.
    pub(crate) fn members(&self, key: &str) -> Vec<String> {
        self.scores(key).into_iter().map(|(member, _)| member).collect()
    }

    /// The server's time in seconds.
    pub(crate) fn time(&self) -> f64 {
        let parts = self.command(&["TIME"]);
        let part = |at: usize| parts[at].as_str().and_then(|text| text.parse::<f64>().ok()).expect("a number");
        part(0) + part(1) / 1e6
    }

    /// A waiting run of a job.
    pub(crate) fn run(&self, job: &str) -> Run {
        let now = block_on(self.store.time()).expect("the store returns its time");
        let number = self.runs.get() + 1;
        self.runs.set(number);
        let [high, low] = number.to_be_bytes();
        let id = RunId::from_random(now, [0, 0, 0x3f, high, low, 0, 0, 0, 0, 0]);
        let mut run = Run::blank(id, RunNumber(number.into()), job_id(job), JobUid::from_bits(7), now);
        run.log.push(entry(now, State::Waiting));
        run
    }

    /// A stored run whose program is running.
    pub(crate) fn running(&self, job: &str) -> Run {
        let mut run = self.run(job);
        self.enter(&mut run, State::Starting);
        self.enter(&mut run, State::Running);
        run
    }

    /// Moves a run to a state and stores it.
    pub(crate) fn enter(&self, run: &mut Run, state: State) {
        self.move_on(run, state);
        self.put(&[Record::Run(Arc::new(run.clone()))]);
    }

    /// Moves a run to a state without storing it.
    pub(crate) fn move_on(&self, run: &mut Run, state: State) {
        let now = block_on(self.store.time()).expect("the store returns its time");
        if state.has_program() {
            run.owner = Some(RunOwner { node: NODE, incarnation: 1 });
        }
        run.state = state;
        run.log.push(entry(now, state));
    }

    /// Writes records in one unit, unconditionally.
    pub(crate) fn put(&self, records: &[Record]) {
        let unit = self.putting(records);
        assert_eq!(self.commit(unit), Ok(UnitReceipt::default()));
    }

    /// A unit that writes records, unconditionally.
    pub(crate) fn putting(&self, records: &[Record]) -> Unit {
        let keys: Vec<RecordKey> = records.iter().map(Record::key).collect();
        let found = block_on(self.store.load(&keys)).expect("records are loaded");
        let versions = found.into_iter().map(|stored| stored.map(|stored| stored.version));
        let mut unit = self.unit();
        unit.compare = keys.into_iter().zip(versions).collect();
        unit.changes = records.iter().cloned().map(RecordChange::Put).collect();
        unit
    }

    /// Deletes a record.
    pub(crate) fn delete(&self, key: RecordKey) {
        let version = self.load(&key).expect("it is there");
        let mut unit = self.unit();
        unit.compare = vec![(key.clone(), Some(version.0))];
        unit.changes = vec![RecordChange::Delete(key)];
        assert_eq!(self.commit(unit), Ok(UnitReceipt::default()));
    }

    /// A record and its version.
    pub(crate) fn load(&self, key: &RecordKey) -> Option<(RecordVersion, Record)> {
        let found = block_on(self.store.load(std::slice::from_ref(key))).expect("records are loaded").pop();
        found.expect("one key has one answer").map(|stored| (stored.version, stored.record))
    }

    /// Takes a lock and returns its fence.
    pub(crate) fn take(&self, lock: &LockName, holder: RunId, ttl: Option<Span>) -> Result<u64, UnitRefusal> {
        let mut unit = self.unit();
        unit.take = vec![LockTake { lock: lock.clone(), holder, ttl }];
        self.commit(unit).map(|done| done.fences[0].1)
    }

    /// Releases a lock.
    pub(crate) fn free(&self, lock: &LockName, holder: RunId) {
        let mut unit = self.unit();
        unit.free = vec![LockRelease { lock: lock.clone(), holder }];
        assert_eq!(self.commit(unit), Ok(UnitReceipt::default()));
    }

    /// Sends a heartbeat of the node. Returns the names of the locks that it has lost.
    pub(crate) fn beat(&self, locks: &[(LockName, RunId)]) -> Vec<LockName> {
        let now = block_on(self.store.time()).expect("the store returns its time");
        let node = NodeRecord { gone: now.plus(Span::from_secs(6)), ..NodeRecord::new(NODE, HOST, 1, now) };
        let lost = block_on(self.store.beat(&node, locks)).expect("a node beats");
        lost.into_iter().map(|(lock, _)| lock).collect()
    }

    /// Appends to the output of a run.
    pub(crate) fn append(&self, run: RunId, from: u64, bytes: &[u8]) -> Result<u64, Fault> {
        block_on(self.store.append(run, from, bytes))
    }

    /// An empty unit.
    pub(crate) fn unit(&self) -> Unit {
        self.units.set(self.units.get() + 1);
        let version = RecordVersion::new(self.writer, self.units.get());
        Unit { version, compare: Vec::new(), changes: Vec::new(), take: Vec::new(), free: Vec::new() }
    }

    /// Commits one unit.
    pub(crate) fn commit(&self, unit: Unit) -> Result<UnitReceipt, UnitRefusal> {
        block_on(self.store.commit(vec![unit])).pop().expect("one unit has one answer")
    }
}

/// Another handle on a server.
pub(crate) fn open(server: &RedisServer, params: &str) -> Arc<RedisStore> {
    let url = RedisUrl::parse(&server.url_with(params)).expect("a URL");
    let options = Options { zones: Arc::new(ZoneRegistry::bundled()), memory: None, accept_loss: false };
    Arc::new(RedisStore::open(&url, options).expect("a store opens"))
}

pub(crate) fn job_id(text: &str) -> JobId {
    JobId::parse(text).expect("a job's id")
}

pub(crate) fn lock_name(text: &str) -> LockName {
    LockName::parse(text).expect("a lock's name")
}

fn entry(at: Instant, state: State) -> Transition {
    Transition::entered(at, state, Actor::Schedule)
}

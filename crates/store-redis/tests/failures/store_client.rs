//! A process that writes and reads records as a node does.

use std::path::PathBuf;
use std::sync::Arc;

use cronhold_core::decision::{LockTake, RecordChange};
use cronhold_core::job::{Job, Program};
use cronhold_core::record::{
    ClaimedRanges, Cursor, JobRecord, JobSource, JobState, LockName, Record, RecordKey, RecordVersion, Run, RunOwner,
    ScheduleId,
};
use cronhold_core::{JobId, JobUid, NodeId, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span, ZoneRegistry};
use cronhold_store::conformance::block_on;
use cronhold_store::{Fault, Store, StoreHealthReport, Unit, UnitRefusal};
use cronhold_store_redis::testing::until;
use cronhold_store_redis::{Options, RedisStore, RedisUrl};

/// A store with a writer of its own, as a separate process would have.
pub(crate) struct StoreClient {
    pub(crate) store: RedisStore,
    writer: u32,
    units: u64,
}

impl StoreClient {
    pub(crate) fn new(url: &str) -> Self {
        Self::with_memory(url, None).expect("a writer enrolls")
    }

    /// With a seq file.
    pub(crate) fn with_memory(url: &str, memory: Option<PathBuf>) -> Result<Self, Fault> {
        let store = open(url, memory, false);
        let writer = block_on(store.enroll())?.0;
        Ok(Self { store, writer, units: 0 })
    }

    /// Writes a record unconditionally.
    pub(crate) fn put(&mut self, record: Record) -> Result<(), UnitRefusal> {
        self.write(RecordChange::Put(record), Vec::new())
    }

    /// Writes a record and takes locks in one unit.
    pub(crate) fn write(&mut self, change: RecordChange, take: Vec<LockTake>) -> Result<(), UnitRefusal> {
        let key = change.key();
        let found = block_on(self.store.load(std::slice::from_ref(&key)))?.remove(0).map(|stored| stored.version);
        self.units += 1;
        let version = RecordVersion::new(self.writer, self.units);
        let unit = Unit { version, compare: vec![(key, found)], changes: vec![change], take, free: Vec::new() };
        block_on(self.store.commit(vec![unit])).remove(0).map(drop)
    }

    /// Creates a record and takes locks, without reading first.
    pub(crate) fn create(&mut self, record: Record, take: Vec<LockTake>) -> Result<(), UnitRefusal> {
        self.units += 1;
        let version = RecordVersion::new(self.writer, self.units);
        let compare = vec![(record.key(), None)];
        let unit = Unit { version, compare, changes: vec![RecordChange::Put(record)], take, free: Vec::new() };
        block_on(self.store.commit(vec![unit])).remove(0).map(drop)
    }

    /// Writes a record, and retries after transient faults.
    pub(crate) fn put_in_time(&mut self, record: &Record) {
        until("a record is written", || match self.put(record.clone()) {
            Ok(()) => Some(()),
            Err(UnitRefusal::Fault(fault)) if fault.is_transient() => None,
            Err(other) => panic!("{other}"),
        });
    }

    /// The fault of a commit that must fail.
    pub(crate) fn fault(&mut self) -> Fault {
        match self.put(counter("refused", 0)) {
            Err(UnitRefusal::Fault(fault)) => fault,
            other => panic!("a fault was expected: {other:?}"),
        }
    }

    pub(crate) fn get(&self, key: &RecordKey) -> Option<Record> {
        let found = until("a record can be read", || block_on(self.store.load(std::slice::from_ref(key))).ok());
        found.into_iter().next().flatten().map(|stored| stored.record)
    }

    pub(crate) fn health(&self) -> StoreHealthReport {
        block_on(self.store.health())
    }
}

pub(crate) fn open(url: &str, memory: Option<PathBuf>, accept_loss: bool) -> RedisStore {
    let url = RedisUrl::parse(url).expect("a URL");
    let options = Options { zones: Arc::new(ZoneRegistry::bundled()), memory, accept_loss };
    RedisStore::open(&url, options).expect("it can be opened")
}

pub(crate) fn job_id(name: &str) -> JobId {
    JobId::parse(name).expect("a job's id")
}

/// A job state whose next run number serves as a counter.
pub(crate) fn counter(job: &str, number: u64) -> Record {
    let mut state = JobState::new(job_id(job));
    state.next_number = number;
    Record::JobState(Arc::new(state))
}

pub(crate) fn job(name: &str) -> Record {
    let job = Job::new(Program::Noop { duration: Span::ZERO });
    let uid = JobUid::from_bits(7);
    Record::Job(Arc::new(JobRecord::new(job_id(name), uid, Arc::new(job), "UTC".into(), JobSource::Api)))
}

/// A cursor at this second.
pub(crate) fn cursor(job: &str, last: i64) -> Record {
    Record::Cursor(Arc::new(Cursor {
        job: job_id(job),
        schedule: ScheduleId::parse("s").expect("a schedule's id"),
        since: Instant::EPOCH,
        last: Some(Instant::from_secs(last)),
        next: None,
        wake: Some(Instant::from_secs(last + 60)),
        revision: 1,
        zones: "2026a".into(),
        generation: 0,
        follows: None,
        at_start: false,
        streak: None,
        claimed: ClaimedRanges::default(),
    }))
}

/// A run that a node has started.
pub(crate) fn running(job: &str, number: u8) -> (RunId, Record) {
    let id = RunId::from_random(Instant::from_secs(1_800_000_000), [0, 0, 0x3f, number, 0, 0, 0, 0, 0, 0]);
    let owner = Some(RunOwner { node: NodeId::from_bits(5), incarnation: 1 });
    let blank = Run::blank(id, RunNumber(u64::from(number)), job_id(job), JobUid::from_bits(7), id.time());
    (id, Record::Run(Arc::new(Run { state: State::Running, owner, ..blank })))
}

/// The same run in another state.
pub(crate) fn in_state(run: &Record, state: State) -> Record {
    match run {
        Record::Run(run) => Record::Run(Arc::new(Run { state, ..Run::clone(run) })),
        other => panic!("a run was expected: {other:?}"),
    }
}

pub(crate) fn lock(name: &str) -> LockName {
    LockName::parse(name).expect("a lock's name")
}

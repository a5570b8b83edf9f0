//! The suite for failing servers on simulated ones, which lose their data only when they are told to. It must be able to
//! fail as well: each flaw here must be detected by the listed cases.
#![cfg(feature = "conformance")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use cronhold_core::RunId;
use cronhold_core::record::{LockName, NodeRecord, RecordKey, StoredRecord};
use cronhold_schedule::Instant;
use cronhold_store::conformance::block_on;
use cronhold_store::troubles::{FailingServers, LossResponse, TROUBLE_CASES};
use cronhold_store::{
    Chunk, Fault, MemoryStore, Obligation, Page, Pending, Query, Store, StoreHealthReport, Unit, UnitReceipt,
    UnitRefusal, Wrapper, WriterId, lock_mutex,
};

/// The flaw of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutageFlaw {
    None,
    /// It confirms commits that it does not keep.
    LosesCommits,
    /// It applies only a part of a unit whose reply is lost.
    LosesHalfUnits,
    /// It says that a commit without a reply was not sent, and confirms it while nothing replies.
    ConfirmsInAdvance,
    /// It appends again what it has appended without a reply.
    AppendsTwice,
    /// It does not notice that the store has lost its data.
    OverlooksLosses,
    /// It reads from a cache while nothing replies.
    ReadsFromCache,
    /// It renews locks that have expired.
    RevivesLocks,
}

/// One server. Its data are replaced when it forgets them.
#[derive(Debug)]
struct SimulatedServer {
    flaw: OutageFlaw,
    data: Mutex<MemoryStore>,
    state: Arc<ServerState>,
}

#[derive(Debug, Default)]
struct ServerState {
    is_suspended: AtomicBool,
    is_down: AtomicBool,
    /// How often it has lost its data.
    losses: AtomicU64,
    /// Commits so far.
    commits: AtomicU64,
}

/// A handle. It has seen the data of one life of the server.
#[derive(Debug)]
struct SimulatedHandle {
    flaw: OutageFlaw,
    data: MemoryStore,
    losses: u64,
    state: Arc<ServerState>,
    trouble: Mutex<Option<String>>,
}

impl SimulatedServer {
    fn new(flaw: OutageFlaw) -> Self {
        Self { flaw, data: Mutex::new(new_data()), state: Arc::default() }
    }
}

#[expect(clippy::disallowed_methods, reason = "the suite lets real time pass")]
fn new_data() -> MemoryStore {
    MemoryStore::new(Arc::new(|| {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970");
        Instant::from_micros(i64::try_from(time.as_micros()).expect("a time in this century"))
    }))
}

impl FailingServers for SimulatedServer {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(SimulatedHandle {
            flaw: self.flaw,
            data: lock_mutex(&self.data).clone(),
            losses: self.state.losses.load(Ordering::SeqCst),
            state: Arc::clone(&self.state),
            trouble: Mutex::default(),
        })
    }

    fn suspend(&self) {
        self.state.is_suspended.store(true, Ordering::SeqCst);
    }

    fn resume(&self) {
        self.state.is_suspended.store(false, Ordering::SeqCst);
    }

    fn kill(&self) {
        self.state.is_down.store(true, Ordering::SeqCst);
    }

    fn start(&self) {
        self.state.is_down.store(false, Ordering::SeqCst);
    }

    fn forget(&self) {
        *lock_mutex(&self.data) = new_data();
        self.state.losses.fetch_add(1, Ordering::SeqCst);
    }

    fn loss_response(&self) -> LossResponse {
        LossResponse::Refuses
    }
}

impl SimulatedHandle {
    /// The fault of a request that reads.
    fn check(&self) -> Result<(), Fault> {
        if self.state.losses.load(Ordering::SeqCst) != self.losses && self.flaw != OutageFlaw::OverlooksLosses {
            return Err(Fault::Permanent("the store has lost its data".to_owned()));
        }
        let is_silent = self.state.is_suspended.load(Ordering::SeqCst) || self.state.is_down.load(Ordering::SeqCst);
        let reads_anyway = self.flaw == OutageFlaw::ReadsFromCache;
        if is_silent && !reads_anyway { Err(Fault::Unavailable("no reply".to_owned())) } else { Ok(()) }
    }

    /// A read, unless the server does not reply.
    fn reply<'a, T: Send + 'a>(&self, request: Pending<'a, Result<T, Fault>>) -> Pending<'a, Result<T, Fault>> {
        match self.check() {
            Ok(()) => request,
            Err(fault) => Box::pin(async { Err(fault) }),
        }
    }

    /// A suspended server takes a commit, and nothing is known about it.
    fn commit_without_reply(&self, mut units: Vec<Unit>) -> Fault {
        for unit in &mut units {
            if self.flaw == OutageFlaw::LosesHalfUnits {
                unit.changes.truncate(1);
                unit.compare.truncate(1);
                unit.take.clear();
            }
        }
        block_on(self.data.commit(units));
        Fault::OutcomeUnknown("no reply".to_owned())
    }

    fn commit_now(&self, units: Vec<Unit>) -> Vec<Result<UnitReceipt, UnitRefusal>> {
        let count = units.len();
        let is_suspended = self.state.is_suspended.load(Ordering::SeqCst);
        let number = self.state.commits.fetch_add(1, Ordering::SeqCst);
        let fault = match self.check() {
            Ok(()) if self.flaw == OutageFlaw::LosesCommits && number % 7 == 6 => {
                return vec![Ok(UnitReceipt::default()); count];
            }
            Ok(()) => {
                *lock_mutex(&self.trouble) = None;
                return block_on(self.data.commit(units));
            }
            Err(_) if is_suspended && self.flaw == OutageFlaw::ConfirmsInAdvance => {
                return vec![Ok(UnitReceipt::default()); count];
            }
            Err(Fault::Unavailable(_)) if is_suspended => self.commit_without_reply(units),
            Err(fault) => fault,
        };
        *lock_mutex(&self.trouble) = Some(fault.to_string());
        vec![Err(UnitRefusal::Fault(fault)); count]
    }
}

impl Wrapper for SimulatedHandle {
    fn inside(&self) -> &dyn Store {
        &self.data
    }

    fn enroll(&self) -> Pending<'_, Result<WriterId, Fault>> {
        self.reply(self.data.enroll())
    }

    fn load<'a>(&'a self, keys: &'a [RecordKey]) -> Pending<'a, Result<Vec<Option<StoredRecord>>, Fault>> {
        self.reply(self.data.load(keys))
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        Box::pin(async { self.commit_now(units) })
    }

    fn due<'a>(
        &'a self,
        after: Option<&'a Obligation>,
        until: Instant,
        limit: usize,
    ) -> Pending<'a, Result<Vec<Obligation>, Fault>> {
        self.reply(self.data.due(after, until, limit))
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        self.reply(self.data.page(query, limit))
    }

    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>> {
        Box::pin(async move {
            let end = self.data.read(run, 0, 0).await?.length;
            let is_repeated = self.flaw == OutageFlaw::AppendsTwice && from < end;
            match self.check() {
                // The reply to the first attempt was lost.
                Ok(()) if is_repeated => self.data.append(run, end, bytes).await.map(|_| from + bytes.len() as u64),
                Ok(()) => self.data.append(run, from, bytes).await,
                Err(Fault::Unavailable(why)) if self.state.is_suspended.load(Ordering::SeqCst) => {
                    self.data.append(run, from, bytes).await?;
                    Err(Fault::OutcomeUnknown(why))
                }
                Err(fault) => Err(fault),
            }
        })
    }

    fn read(&self, run: RunId, from: u64, most: usize) -> Pending<'_, Result<Chunk, Fault>> {
        self.reply(self.data.read(run, from, most))
    }

    fn outputs(&self, after: Option<RunId>, limit: usize) -> Pending<'_, Result<Vec<RunId>, Fault>> {
        self.reply(self.data.outputs(after, limit))
    }

    fn beat<'a>(
        &'a self,
        node: &'a NodeRecord,
        locks: &'a [(LockName, RunId)],
    ) -> Pending<'a, Result<Vec<(LockName, RunId)>, Fault>> {
        let beat = self.reply(self.data.beat(node, locks));
        let revives = self.flaw == OutageFlaw::RevivesLocks;
        Box::pin(async move { beat.await.map(|lost| if revives { Vec::new() } else { lost }) })
    }

    fn time(&self) -> Pending<'_, Result<Instant, Fault>> {
        self.reply(self.data.time())
    }

    fn health(&self) -> Pending<'_, StoreHealthReport> {
        Box::pin(async {
            let trouble = lock_mutex(&self.trouble).clone();
            StoreHealthReport { trouble, ..self.data.health().await }
        })
    }
}

fn simulated() -> SimulatedServer {
    SimulatedServer::new(OutageFlaw::None)
}

cronhold_store::trouble_tests!(simulated);

/// Whether a case detects a flaw.
fn detects(name: &str, flaw: OutageFlaw) -> bool {
    let (_, case) = TROUBLE_CASES.iter().find(|(other, _)| *other == name).expect("there is such a case");
    let server = SimulatedServer::new(flaw);
    catch_unwind(AssertUnwindSafe(|| case(&server))).is_err()
}

#[test]
fn suite_detects_every_flaw() {
    for (flaw, cases) in [
        (
            OutageFlaw::LosesCommits,
            &["killed_server_keeps_confirmed_commits", "increments_of_several_processes_add_up_across_outages"][..],
        ),
        (
            OutageFlaw::LosesHalfUnits,
            &["commits_to_a_suspended_server_settle", "unit_sent_to_a_suspended_server_is_whole"],
        ),
        (OutageFlaw::ConfirmsInAdvance, &["commits_to_a_suspended_server_settle"]),
        (OutageFlaw::AppendsTwice, &["output_is_whole_after_a_restart_and_a_suspension"]),
        (
            OutageFlaw::OverlooksLosses,
            &["lost_records_and_locks_are_restored", "lock_that_another_took_after_a_loss_is_reported_as_lost"],
        ),
        (OutageFlaw::ReadsFromCache, &["reads_from_a_suspended_server_fail"]),
        (OutageFlaw::RevivesLocks, &["locks_expire_while_the_server_is_suspended"]),
    ] {
        for case in cases {
            assert!(detects(case, flaw), "`{case}` does not detect that a store is wrong: {flaw:?}");
        }
    }
}

//! A process whose connection is cut at random moments while others write: every list that it answers equals what is
//! stored. A test and a benchmark include this file as a module, with different numbers of cuts.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use cronhold_core::JobId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{JobState, Record, RecordKey, RecordVersion, StoredRecord};
use cronhold_schedule::ZoneRegistry;
use cronhold_store::conformance::block_on;
use cronhold_store::{Query, Store, Unit, UnitReceipt};
use cronhold_store_remote::testing::until;
use cronhold_store_zookeeper::testing::ZooKeeperServer;
use cronhold_store_zookeeper::{ZooKeeperOptions, ZooKeeperStore, ZooKeeperUrl};

/// Commits between two cuts, at most.
const COMMITS_MAX: u64 = 8;
/// Cuts between two comparisons.
const CUTS_PER_LIST: u64 = 10;
/// Records that are written, deleted and written again.
const RECORDS: u64 = 40;
/// Records of another process that writes all the time.
const LOAD_RECORDS: u64 = 8;

/// Passes connections on to a server, and cuts them on request.
struct CuttingProxy {
    port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl CuttingProxy {
    fn to(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let all = Arc::clone(&streams);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let copy = |stream: &TcpStream| stream.try_clone().expect("a socket can be shared");
                all.lock().expect("not poisoned").extend([copy(&client), copy(&server)]);
                let (from, to) = (copy(&client), copy(&server));
                thread::spawn(move || pump(from, to));
                thread::spawn(move || pump(server, client));
            }
        });
        Self { port, streams }
    }

    /// Closes all connections; false if there was none.
    fn cut(&self) -> bool {
        let streams = std::mem::take(&mut *self.streams.lock().expect("not poisoned"));
        for stream in &streams {
            // The other side may have closed it already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        !streams.is_empty()
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 4_096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn open(port: u16) -> ZooKeeperStore {
    let url = ZooKeeperUrl::parse(&format!("zk://127.0.0.1:{port}/mirror?timeout=4s"), None).expect("a URL");
    let options = ZooKeeperOptions { zones: Arc::new(ZoneRegistry::bundled()), memory: None };
    ZooKeeperStore::open(&url, options).expect("a thread")
}

fn job(number: u64) -> JobId {
    JobId::parse(&format!("job {number:03}")).expect("an id")
}

/// Writes or deletes a record, and returns what is stored then.
fn change(
    store: &ZooKeeperStore,
    version: RecordVersion,
    job: JobId,
    before: Option<RecordVersion>,
    is_deletion: bool,
) -> Option<StoredRecord> {
    let key = RecordKey::JobState(job.clone());
    let record = Record::JobState(Arc::new(JobState { next_number: version.bits(), ..JobState::new(job) }));
    let change = if is_deletion { RecordChange::Delete(key.clone()) } else { RecordChange::Put(record.clone()) };
    let unit =
        Unit { version, compare: vec![(key, before)], changes: vec![change], take: Vec::new(), free: Vec::new() };
    assert_eq!(block_on(store.commit(vec![unit])), [Ok(UnitReceipt::default())]);
    (!is_deletion).then_some(StoredRecord { version, record })
}

/// A process that writes as fast as it can, so that the mirror is never idle.
fn write_all_the_time(port: u16, is_over: &AtomicBool, written: &AtomicU64) {
    let store = open(port);
    let number = block_on(store.enroll()).expect("the server replies").0;
    let mut versions: BTreeMap<u64, RecordVersion> = BTreeMap::new();
    let mut units = 0;
    while !is_over.load(Ordering::Relaxed) {
        units += 1;
        let place = units % LOAD_RECORDS;
        let version = RecordVersion::new(number, units);
        change(&store, version, job(RECORDS + place), versions.insert(place, version), false);
        written.store(units, Ordering::Relaxed);
    }
}

/// A deterministic random number generator (xorshift).
struct RandomSteps(u64);

impl RandomSteps {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Cuts the connection of a process this many times, and compares its lists. Returns how many records were written
/// meanwhile. With `is_loaded`, another process writes all the time.
pub(crate) fn compare_mirror(cuts: u64, seed: u64, is_loaded: bool) -> u64 {
    let server = ZooKeeperServer::start();
    let proxy = CuttingProxy::to(server.port());
    let (writer, reader) = (open(server.port()), open(proxy.port));
    let (is_over, loaded) = (AtomicBool::new(!is_loaded), AtomicU64::new(0));
    let last = job(RECORDS);
    let list = || {
        let page = until("a list", || block_on(reader.page(&Query::JobStates { after: None }, 1_000)).ok());
        let is_compared = |stored: &StoredRecord| matches!(&stored.record, Record::JobState(state) if state.job < last);
        page.records.into_iter().filter(is_compared).collect::<Vec<_>>()
    };
    let mut units = 0;
    thread::scope(|scope| {
        scope.spawn(|| write_all_the_time(server.port(), &is_over, &loaded));
        let number = block_on(writer.enroll()).expect("the server replies").0;
        let mut stored: BTreeMap<u64, StoredRecord> = BTreeMap::new();
        let mut random = RandomSteps(seed);
        assert!(list().is_empty());
        for cut in 1..=cuts {
            until("there is a connection to cut", || {
                for _ in 0..=random.below(COMMITS_MAX) {
                    units += 1;
                    let place = random.below(RECORDS);
                    let is_deletion = random.below(5) == 0 && stored.contains_key(&place);
                    let before = stored.get(&place).map(|stored| stored.version);
                    let version = RecordVersion::new(number, units);
                    match change(&writer, version, job(place), before, is_deletion) {
                        Some(record) => drop(stored.insert(place, record)),
                        None => drop(stored.remove(&place)),
                    }
                }
                proxy.cut().then_some(())
            });
            if cut % CUTS_PER_LIST == 0 {
                let expected: Vec<StoredRecord> = stored.values().cloned().collect();
                assert_eq!(list(), expected, "after {cut} cuts");
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(stored.len() > 20, "{} records", stored.len());
    });
    units + loaded.load(Ordering::Relaxed)
}

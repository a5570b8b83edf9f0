//! The mirror of a process whose connection is cut again and again while another process writes: afterwards it equals what
//! is stored.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
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

/// Cuts of the connection.
const CUTS: u64 = 300;
/// Commits between two cuts.
const COMMITS: u64 = 4;
/// Records that are written, deleted and written again.
const RECORDS: u64 = 40;

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

    /// Closes all connections.
    fn cut(&self) {
        for stream in self.streams.lock().expect("not poisoned").drain(..) {
            // The other side may have closed it already.
            let _ = stream.shutdown(Shutdown::Both);
        }
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
    number: u64,
    before: Option<&StoredRecord>,
    is_deletion: bool,
) -> Option<StoredRecord> {
    let key = RecordKey::JobState(job(number));
    let record = Record::JobState(Arc::new(JobState { next_number: version.bits(), ..JobState::new(job(number)) }));
    let change = if is_deletion { RecordChange::Delete(key.clone()) } else { RecordChange::Put(record.clone()) };
    let compare = vec![(key, before.map(|stored| stored.version))];
    let unit = Unit { version, compare, changes: vec![change], take: Vec::new(), free: Vec::new() };
    assert_eq!(block_on(store.commit(vec![unit])), [Ok(UnitReceipt::default())]);
    (!is_deletion).then_some(StoredRecord { version, record })
}

#[test]
fn mirror_equals_what_is_stored_after_many_disconnects() {
    let server = ZooKeeperServer::start();
    let proxy = CuttingProxy::to(server.port());
    let (writer, reader) = (open(server.port()), open(proxy.port));
    let number = block_on(writer.enroll()).expect("the server replies").0;
    let mut stored: BTreeMap<u64, StoredRecord> = BTreeMap::new();
    let mut units = 0;
    let list = || until("a list", || block_on(reader.page(&Query::JobStates { after: None }, 1_000)).ok());
    assert!(list().is_empty());
    for cut in 0..CUTS {
        for step in 0..COMMITS {
            units += 1;
            // A fixed order that visits all records and deletes every fifth that exists.
            let place = (units * 7 + cut) % RECORDS;
            let is_deletion = units % 5 == 0 && stored.contains_key(&place);
            let version = RecordVersion::new(number, units);
            match change(&writer, version, place, stored.get(&place), is_deletion) {
                Some(record) => drop(stored.insert(place, record)),
                None => drop(stored.remove(&place)),
            }
            if step == cut % COMMITS {
                proxy.cut();
            }
        }
        if cut % 10 == 9 {
            let expected: Vec<StoredRecord> = stored.values().cloned().collect();
            assert_eq!(list().records, expected, "after {cut} cuts");
        }
    }
    assert!(units > CUTS && stored.len() > 20);
}

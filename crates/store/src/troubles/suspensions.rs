//! Cases about servers that are suspended: connections stay open, and nothing replies.

use cronhold_core::State;
use cronhold_core::record::{Record, RecordKey, StoredRecord};
use cronhold_schedule::Span;

use super::client::{ClientProcess, assert_without_reply, unless_transient};
use super::waiting::{pass, until};
use super::{FailingServers, LONG_TTL};
use crate::conformance::block_on;
use crate::conformance::samples::{at, job_state, lock_name, node, run_id, run_in};
use crate::{Fault, Query, UnitReceipt, UnitRefusal};

/// Expires while a server is suspended for [`SUSPENSION`].
const SHORT_TTL: Span = Span::from_millis(1_500);
const SUSPENSION: Span = Span::from_millis(2_500);

/// How often a server is suspended in one case.
const ROUNDS: u64 = 3;

/// A commit to a suspended server is not confirmed. Later it turns out whether it took effect, and it can be sent again:
/// each takes effect once, and all its records together.
pub fn commits_to_a_suspended_server_settle(servers: &dyn FailingServers) {
    let mut client = ClientProcess::start(servers);
    let keys = [job_state("a", 0).key(), job_state("b", 0).key()];
    for number in 1..=ROUNDS {
        let versions: Vec<_> = keys.iter().map(|key| client.version(key)).collect();
        let unit = client.unit().put(job_state("a", number), versions[0]).put(job_state("b", number), versions[1]);
        let other = client.unit().put(job_state(&format!("other {number}"), number), None);
        servers.suspend();
        assert_without_reply(&client.expect_commit_fault(unit.clone()));
        assert_without_reply(&client.expect_commit_fault(other.clone()));
        servers.resume();
        assert_eq!(client.settle(&unit), Ok(UnitReceipt::default()));
        assert_eq!(client.settle(&other), Ok(UnitReceipt::default()));
        let found: Vec<Option<Record>> = client.load(&keys).into_iter().map(|stored| Some(stored?.record)).collect();
        assert_eq!(found, [Some(job_state("a", number)), Some(job_state("b", number))]);
        let found = client.load(&keys).into_iter().flatten().map(|stored| stored.version);
        assert!(found.eq([unit.version(); 2]), "one unit has written both");
    }
    for number in 1..=ROUNDS {
        let record = job_state(&format!("other {number}"), number);
        assert_eq!(client.get(&record.key()), Some(record));
    }
}

/// A unit that was sent to a suspended server has written its record and taken its lock, or neither.
pub fn unit_sent_to_a_suspended_server_is_whole(servers: &dyn FailingServers) {
    let mut client = ClientProcess::start(servers);
    let reader = ClientProcess::start(servers);
    for number in 0..3 {
        let (id, lock) = (run_id(1, number), lock_name(&format!("lock {number}")));
        let keys = [RecordKey::Run(id), RecordKey::Lock(lock.clone())];
        let run = run_in(id, "a", State::Running, Some(1));
        let unit = client.unit().put(run, None).take(&lock, id, Some(LONG_TTL));
        servers.suspend();
        assert_without_reply(&client.expect_commit_fault(unit.clone()));
        servers.resume();
        let found: Vec<Option<StoredRecord>> = reader.load(&keys);
        assert_eq!(found[0].is_some(), found[1].is_some(), "a part of the unit took effect: {found:?}");
        client.settle(&unit).expect("nothing else writes these records");
        let held = reader.lock(&lock).expect("the lock is held");
        assert_eq!(held.holder, id);
        assert!(reader.get(&keys[0]).is_some());
        let theirs = client.unit().take(&lock, run_id(2, number), Some(LONG_TTL));
        assert_eq!(client.settle(&theirs), Err(UnitRefusal::Held { lock, holder: id }));
    }
}

/// Every read from a suspended server fails after a while, and says that a retry can help.
pub fn reads_from_a_suspended_server_fail(servers: &dyn FailingServers) {
    let mut client = ClientProcess::start(servers);
    let record = job_state("a", 1);
    client.put(&record);
    servers.suspend();
    let store = &client.store;
    let faults = [
        ("load", block_on(store.load(&[record.key()])).err()),
        ("page", block_on(store.page(&Query::JobStates { after: None }, 9)).err()),
        ("due", block_on(store.due(None, at(9), 9)).err()),
        ("read", block_on(store.read(run_id(1, 1), 0, 9)).err()),
        ("outputs", block_on(store.outputs(None, 9)).err()),
        ("time", block_on(store.time()).err()),
    ];
    for (request, fault) in faults {
        assert!(matches!(fault, Some(Fault::Unavailable(_))), "{request}: {fault:?}");
    }
    let newcomer = servers.open();
    let fault = block_on(newcomer.enroll()).expect_err("nothing replies");
    assert_without_reply(&fault);
    servers.resume();
    assert_eq!(client.get(&record.key()), Some(record));
    until("the newcomer enrolls", || unless_transient(block_on(newcomer.enroll())));
}

/// A suspended server does not prolong locks: a heartbeat afterwards reports those that have expired, and renews the
/// others.
pub fn locks_expire_while_the_server_is_suspended(servers: &dyn FailingServers) {
    let (mut client, mut other) = (ClientProcess::start(servers), ClientProcess::start(servers));
    let (mine, theirs, node) = (run_id(1, 1), run_id(1, 2), node(1, "n"));
    let [short, long] = ["short", "long"].map(lock_name);
    let unit = client.unit().take(&short, mine, Some(SHORT_TTL)).take(&long, mine, Some(LONG_TTL));
    let UnitReceipt { fences } = client.commit(unit).expect("the locks are free");
    servers.suspend();
    pass(SUSPENSION);
    servers.resume();
    let named = [(short.clone(), mine), (long.clone(), mine)];
    assert_eq!(client.beat(&node, &named), [(short.clone(), mine)]);
    let unit = other.unit().take(&short, theirs, Some(LONG_TTL));
    other.settle(&unit).expect("it has expired");
    let held = other.lock(&short).expect("it was taken");
    let before = fences.iter().find(|(lock, _)| *lock == short).expect("it was taken").1;
    assert!(held.holder == theirs && held.fence > before, "{held:?} comes after fence {before}");
    let unit = other.unit().take(&long, theirs, Some(LONG_TTL));
    assert_eq!(other.settle(&unit), Err(UnitRefusal::Held { lock: long, holder: mine }));
}

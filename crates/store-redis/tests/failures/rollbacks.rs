//! Servers that were rolled back: live processes restore what they have written, and commits are rejected meanwhile.

use std::path::PathBuf;
use std::time::Duration;

use cronhold_core::decision::{LockTake, RecordChange};
use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey};
use cronhold_core::{NodeId, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::conformance::block_on;
use cronhold_store::{Fault, Store};
use cronhold_store_redis::testing::{RedisServer, until};

use crate::store_client::{StoreClient, counter, cursor, in_state, job, job_id, lock, running};

/// The key that exists while commits are rejected.
pub(crate) const HEALING: &str = "{cronken}:cronhold:healing";

/// The key with the epoch and the seq of the store.
pub(crate) const META: &str = "{cronken}:cronhold:meta";

/// The shortest time for which commits are rejected, minus a margin for slow machines.
const WAIT_MILLIS: i64 = 30_000;

/// For how many more milliseconds commits are rejected.
pub(crate) fn wait_left(server: &RedisServer) -> i64 {
    server.cli(&["PTTL", HEALING]).parse().expect("a number")
}

/// Ends the time for which commits are rejected.
pub(crate) fn let_pass(server: &RedisServer) {
    let left = wait_left(server);
    assert!(left > WAIT_MILLIS, "nothing is committed for a while: {left} ms are left");
    server.cli(&["DEL", HEALING]);
}

pub(crate) fn assert_gone_back(fault: &Fault) {
    assert!(matches!(fault, Fault::Recovering(_)), "{fault}");
}

/// A heartbeat of the node of a process.
pub(crate) fn beat(client: &StoreClient) -> Result<(), Fault> {
    let node = NodeRecord::new(NodeId::from_bits(5), "five", 1, Instant::EPOCH);
    block_on(client.store.beat(&node, &[])).map(drop)
}

/// Waits until the heartbeats of a process detect the rollback.
pub(crate) fn beat_until_noticed(client: &StoreClient) {
    until("a beat notices", || match beat(client) {
        Err(Fault::Recovering(_)) => Some(()),
        Err(Fault::Unavailable(_) | Fault::OutcomeUnknown(_)) | Ok(()) => None,
        Err(fault) => panic!("{fault}"),
    });
}

/// The same server process, without its keys. `troubles` has a new process without a file.
#[test]
fn flushed_server_is_restored() {
    let server = RedisServer::start();
    let mut client = StoreClient::new(&server.url());
    let (id, run) = running("a", 1);
    let name = lock("the lock");
    let take = LockTake { lock: name.clone(), holder: id, ttl: Some(Span::from_secs(300)) };
    let records = [job("a"), counter("a", 1), cursor("a", 1_800_000_000)];
    for record in &records {
        client.put(record.clone()).expect("the server takes it");
    }
    client.write(RecordChange::Put(run.clone()), vec![take]).expect("the server takes it");
    client.put(job("gone")).expect("the server takes it");
    client.write(RecordChange::Delete(RecordKey::Job(job_id("gone"))), Vec::new()).expect("the server takes it");

    server.cli(&["FLUSHALL"]);
    assert_gone_back(&client.fault());
    for record in records.iter().chain([&run]) {
        assert_eq!(client.get(&record.key()).as_ref(), Some(record), "it was brought back");
    }
    assert_eq!(client.get(&RecordKey::Job(job_id("gone"))), None, "what was deleted stays so");
    let held = client.get(&RecordKey::Lock(name));
    assert!(matches!(&held, Some(Record::Lock(held)) if held.holder == id), "{held:?}");
    assert_gone_back(&client.fault());
    let left = wait_left(&server);
    assert!(left > 200_000, "commits are rejected for the longest lease: {left} ms are left");
    let_pass(&server);
    client.put(counter("a", 2)).expect("the server takes it");
    let due = block_on(client.store.due(None, Instant::from_secs(1_900_000_000), 10)).expect("the server takes it");
    assert!(due.iter().any(|obligation| obligation.key == records[2].key()), "lists are brought back: {due:?}");
    let warnings = client.health().warnings.join("\n");
    assert!(warnings.contains("rolled back to an earlier state 1 times"), "{warnings}");
}

/// A marker names a run that does not exist, and lives for years: no recovery waits for it, and it is restored.
#[test]
fn marker_lock_is_restored_and_not_waited_for() {
    let server = RedisServer::start();
    let mut client = StoreClient::new(&server.url());
    let (holder, _) = running("a", 1);
    let (mark, short) = (lock("#cronhold/removed/a"), lock("#cronhold/event/1"));
    let take = |lock: &LockName, secs| LockTake { lock: lock.clone(), holder, ttl: Some(Span::from_secs(secs)) };
    let takes = vec![take(&mark, 10 * 365 * 86_400), take(&short, 30)];
    client.write(RecordChange::Put(counter("a", 1)), takes).expect("the server takes it");
    server.cli(&["FLUSHALL"]);
    beat_until_noticed(&client);
    let left = wait_left(&server);
    assert!(left > WAIT_MILLIS && left <= 45_500, "{left} ms are left");
    assert!(client.get(&RecordKey::Lock(mark)).is_some());
    assert_eq!(client.get(&RecordKey::Lock(short)), None);
}

#[test]
fn each_process_restores_its_last_writes() {
    let server = RedisServer::start();
    let [mut one, mut two] = [StoreClient::new(&server.url()), StoreClient::new(&server.url())];
    one.put(job("of one")).unwrap();
    two.put(job("of two")).unwrap();
    one.put(cursor("behind", 1_800_000_000)).unwrap();
    two.put(cursor("behind", 1_800_000_060)).unwrap();
    one.put(job("deleted by two")).unwrap();
    // A process that receives hints knows that another process wrote the record last.
    let (sender, hints) = std::sync::mpsc::channel();
    let store = one.store.clone();
    std::thread::spawn(move || while sender.send(block_on(store.hints())).is_ok() {});
    until("one listens", || {
        two.put(counter("heard", 1)).unwrap();
        hints.try_recv().ok()
    });
    let gone = RecordKey::Job(job_id("deleted by two"));
    two.write(RecordChange::Delete(gone.clone()), Vec::new()).unwrap();
    until("one receives the hint", || hints.try_recv().ok()?.iter().any(|hint| hint.key == gone).then_some(()));

    server.cli(&["FLUSHALL"]);
    beat_until_noticed(&one);
    beat_until_noticed(&two);
    for record in [job("of one"), job("of two"), cursor("behind", 1_800_000_060)] {
        assert_eq!(one.get(&record.key()), Some(record));
    }
    assert_eq!(one.get(&gone), None);
    let_pass(&server);
    one.put(counter("a", 1)).unwrap();
    two.put(counter("b", 1)).unwrap();
}

/// One process has not received the notification of a deletion, and restores its writes after the other one.
#[test]
fn deletion_is_restored_whichever_process_comes_first() {
    for is_deleter_first in [true, false] {
        let server = RedisServer::start();
        let [mut one, mut two] = [StoreClient::new(&server.url()), StoreClient::new(&server.url())];
        one.put(job("deleted")).unwrap();
        one.put(job("created again")).unwrap();
        for name in ["deleted", "created again"] {
            two.write(RecordChange::Delete(RecordKey::Job(job_id(name))), Vec::new()).unwrap();
        }
        one.put(job("created again")).unwrap();
        server.cli(&["FLUSHALL"]);
        let (first, second) = if is_deleter_first { (&two, &one) } else { (&one, &two) };
        beat_until_noticed(first);
        beat_until_noticed(second);
        assert_eq!(one.get(&RecordKey::Job(job_id("deleted"))), None, "deleter first: {is_deleter_first}");
        assert_eq!(one.get(&RecordKey::Job(job_id("created again"))), Some(job("created again")));
    }
}

/// A notification of another process's commit arrives after this process has written the same record again.
#[test]
fn late_notification_does_not_drop_a_later_write() {
    let server = RedisServer::start();
    let [mut one, mut two] = [StoreClient::new(&server.url()), StoreClient::new(&server.url())];
    let (sender, hints) = std::sync::mpsc::channel();
    let store = one.store.clone();
    std::thread::spawn(move || while sender.send(block_on(store.hints())).is_ok() {});
    until("one listens", || {
        two.put(counter("heard", 1)).unwrap();
        hints.try_recv().ok()
    });
    two.put(counter("a", 1)).unwrap();
    let seq = number_in_meta(&server, "seq");
    one.put(counter("a", 2)).unwrap();
    // Messages are handled in order, so that the second one shows that the first one was handled.
    for field in ["a", "last"] {
        let message = format!("00000000000000ff2!{:04x}{field}{seq:016x}", field.len());
        server.cli(&["PUBLISH", "{cronken}:cronhold:hints", &message]);
    }
    let last = RecordKey::JobState(job_id("last"));
    until("one receives both", || hints.try_recv().ok()?.iter().any(|hint| hint.key == last).then_some(()));
    server.cli(&["FLUSHALL"]);
    beat_until_noticed(&one);
    assert_eq!(one.get(&RecordKey::JobState(job_id("a"))), Some(counter("a", 2)));
}

#[test]
fn lost_commit_is_detected_although_others_advanced() {
    let server = RedisServer::start();
    let mut client = StoreClient::new(&server.url());
    client.put(counter("a", 1)).unwrap();
    client.put(counter("a", 2)).unwrap();
    // As after a failover: commits of others have reached the same seqs since.
    let own = own_field(&server);
    let before = number_in_meta(&server, &own);
    server.cli(&["HSET", META, &own, &(before - 1).to_string()]);
    server.cli(&["HDEL", "{cronken}:cronhold:job_states", "a"]);
    assert_gone_back(&client.fault());
    assert_eq!(client.get(&RecordKey::JobState(job_id("a"))), Some(counter("a", 2)));
    let_pass(&server);
    client.put(counter("a", 3)).unwrap();
}

#[test]
fn lost_first_commit_is_detected() {
    let server = RedisServer::start();
    let mut client = StoreClient::new(&server.url());
    client.put(counter("a", 1)).unwrap();
    server.cli(&["HDEL", META, &own_field(&server)]);
    server.cli(&["HDEL", "{cronken}:cronhold:job_states", "a"]);
    assert_gone_back(&client.fault());
    assert_eq!(client.get(&RecordKey::JobState(job_id("a"))), Some(counter("a", 1)));
}

/// Each command on the store is a process of its own, which commits and never comes back.
#[test]
fn many_other_processes_do_not_look_like_a_rollback() {
    let server = RedisServer::start();
    let mut client = StoreClient::new(&server.url());
    client.put(counter("a", 1)).unwrap();
    let own = own_field(&server);
    let commands = "for number = 1, 1100 do redis.call('HSET', KEYS[1], 'by:' .. number, ARGV[1]) end";
    let seq = number_in_meta(&server, "seq") + 5;
    server.cli(&["EVAL", commands, "1", META, &seq.to_string()]);
    server.cli(&["HSET", META, "seq", &seq.to_string()]);
    StoreClient::new(&server.url()).put(counter("b", 1)).unwrap();
    assert_eq!(server.cli(&["HEXISTS", META, &own]), "0", "old fields are dropped");
    beat(&client).unwrap();
    assert_eq!(number_in_meta(&server, &own), number_in_meta(&server, "seq"), "a heartbeat keeps a live process");
    client.put(counter("a", 2)).unwrap();
    // A commit that is lost is still noticed.
    server.cli(&["HDEL", META, &own]);
    server.cli(&["HDEL", "{cronken}:cronhold:job_states", "a"]);
    assert_gone_back(&client.fault());
}

#[test]
fn writer_numbers_do_not_run_out() {
    let server = RedisServer::start();
    let mut old = StoreClient::new(&server.url());
    old.put(counter("a", 1)).unwrap();
    // Zero is the number of the store itself.
    let cases = [(8_388_607_u64, [8_388_608, 8_388_609]), (2_147_483_646, [2_147_483_647, 1]), (2_147_483_647, [1, 2])];
    for (last, numbers) in cases {
        server.cli(&["HSET", META, "writers", &last.to_string()]);
        let writer = block_on(StoreClient::new(&server.url()).store.enroll()).unwrap();
        assert!(numbers.contains(&writer.0), "{writer:?} after {last}");
        let mut new = StoreClient::new(&server.url());
        new.put(counter("b", 9)).unwrap();
        new.put(counter("b", 1)).unwrap();
    }
    old.put(counter("a", 2)).unwrap();
}

/// The field with the last commit of the only process that has committed anything.
fn own_field(server: &RedisServer) -> String {
    let fields = server.cli(&["HKEYS", META]);
    fields.lines().find(|field| field.starts_with("by:")).expect("it is there").to_owned()
}

fn number_in_meta(server: &RedisServer, field: &str) -> u64 {
    server.cli(&["HGET", META, field]).parse().expect("a number")
}

#[test]
fn store_reinitialized_by_a_newcomer_is_restored_and_keeps_later_writes() {
    let server = RedisServer::start();
    let mut old = StoreClient::new(&server.url());
    let (id, run) = running("a", 1);
    for record in [job("lost"), counter("a", 1), counter("b", 1), run.clone()] {
        old.put(record).unwrap();
    }
    let before = number_in_meta(&server, "seq");
    server.cli(&["FLUSHALL"]);
    // This process does not know the old store, so it does not detect a rollback.
    let mut new = StoreClient::new(&server.url());
    new.put(counter("b", 7)).unwrap();
    let epoch = server.cli(&["HGET", META, "epoch"]);

    assert_gone_back(&old.fault());
    assert_ne!(server.cli(&["HGET", META, "epoch"]), epoch, "the new process must notice it");
    assert!(number_in_meta(&server, "seq") > before, "commits are counted on");
    assert_eq!(old.get(&job("lost").key()), Some(job("lost")));
    assert_eq!(old.get(&counter("b", 7).key()), Some(counter("b", 7)), "it was written after the loss");
    let_pass(&server);
    assert_gone_back(&new.fault());
    new.put(counter("c", 1)).expect("it has lost nothing, so commits are not rejected again");

    // Commits from now on replace those before the loss in the journal.
    let ended = in_state(&run, State::Success);
    old.put(ended.clone()).unwrap();
    old.put(counter("a", 2)).unwrap();
    server.cli(&["FLUSHALL"]);
    assert_gone_back(&old.fault());
    assert_eq!(old.get(&RecordKey::Run(id)), Some(ended), "a run that has ended is not run once more");
    assert_eq!(old.get(&RecordKey::JobState(job_id("a"))), Some(counter("a", 2)));
}

/// Other processes delete a job and end a run, and the hints are lost. The journal check finds both.
fn deleted_records_are_not_restored(check_journal: impl FnOnce(&StoreClient)) {
    let server = RedisServer::start();
    let mut client = StoreClient::new(&server.url());
    let (id, run) = running("a", 1);
    for record in [job("kept"), job("gone"), run.clone()] {
        client.put(record).expect("the server takes it");
    }
    let own = own_field(&server);
    let mut other = StoreClient::new(&server.url());
    other.write(RecordChange::Delete(RecordKey::Job(job_id("gone"))), Vec::new()).expect("the server takes it");
    other.put(in_state(&run, State::Success)).expect("the server takes it");
    drop(other);
    let reached = number_in_meta(&server, "seq");
    check_journal(&client);
    until("it has verified its journal", || (number_in_meta(&server, &own) >= reached).then_some(()));
    // The reply is in flight when the change is visible. The next one follows it.
    beat(&client).expect("nothing is wrong");

    server.cli(&["FLUSHALL"]);
    beat_until_noticed(&client);
    assert_eq!(client.get(&RecordKey::Job(job_id("kept"))), Some(job("kept")));
    assert_eq!(client.get(&RecordKey::Job(job_id("gone"))), None, "another process has deleted it");
    assert_eq!(client.get(&RecordKey::Run(id)), None, "the run has ended; the process that ended it restores it");
}

#[test]
fn periodic_check_drops_records_changed_by_others() {
    deleted_records_are_not_restored(|client| beat(client).expect("nothing is wrong"));
}

#[test]
fn check_after_a_gap_drops_records_changed_by_others() {
    // A new subscription has missed everything before it.
    deleted_records_are_not_restored(|client| {
        let store = client.store.clone();
        std::thread::spawn(move || block_on(store.hints()));
    });
}

#[test]
fn commits_are_rejected_until_everything_is_restored() {
    let server = RedisServer::start();
    let mut client = StoreClient::new(&server.url());
    client.store.set_min_recovery_time(Duration::from_millis(1));
    client.put(counter("a", 1)).unwrap();
    server.cli(&["FLUSHALL"]);
    assert_gone_back(&client.fault());
    let left = wait_left(&server);
    assert!(left > 1, "every call with records takes some time more: {left} ms are left");
}

#[test]
fn writer_numbers_are_unique_after_data_loss() {
    let server = RedisServer::start();
    drop(StoreClient::new(&server.url()));
    server.cli(&["HSET", META, "writers", "5000000"]);
    let mut client = StoreClient::new(&server.url());
    client.put(counter("a", 1)).unwrap();
    server.cli(&["FLUSHALL"]);
    assert_gone_back(&client.fault());
    assert_eq!(number_in_meta(&server, "writers"), 5_000_001);
}

#[test]
fn old_clients_are_dropped() {
    let server = RedisServer::start();
    let mut client = StoreClient::new(&server.url());
    client.put(counter("a", 1)).unwrap();
    let script = "for n = 1, 1000 do redis.call('HSET', KEYS[1], 'by:old' .. n, '0') end";
    server.cli(&["EVAL", script, "1", META]);
    let mut other = StoreClient::new(&server.url());
    let left: u64 = server.cli(&["HLEN", META]).parse().expect("a number");
    assert!(left < 600, "{left}");
    other.put(counter("b", 1)).unwrap();
    client.put(counter("a", 2)).unwrap();
}

#[test]
fn restarted_process_detects_rollback_by_its_seq_file() {
    let mut server = RedisServer::start();
    let memory = std::env::temp_dir().join(format!("cronhold-redis-notes-{}", std::process::id()));
    let notes = Notes(memory.clone());
    let open = |server: &RedisServer| StoreClient::with_memory(&server.url(), Some(memory.clone()));
    let mut client = open(&server).unwrap();
    until("it is noted", || {
        client.put(counter("a", 1)).unwrap();
        notes.0.exists().then_some(())
    });
    drop(client);
    open(&server).expect("nothing is wrong");
    server.restart_empty();
    assert_gone_back(&open(&server).err().expect("the store has forgotten"));
    let_pass(&server);
    until("commits are accepted", || open(&server).ok());
}

/// A file that is removed at the end.
struct Notes(PathBuf);

impl Drop for Notes {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

//! Servers that are restarted: commits are rejected until each process could report which of its commits are lost.

use cronhold_core::decision::{LockTake, RecordChange};
use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey};
use cronhold_core::{NodeId, RunId, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::conformance::block_on;
use cronhold_store::rollback::wins_merge;
use cronhold_store::{Fault, Store, UnitRefusal};
use cronhold_store_redis::testing::{RedisServer, ServerOptions, until};

use crate::rollbacks::{HEALING, META, assert_gone_back, beat, beat_until_noticed, let_pass, wait_left};
use crate::store_client::{StoreClient, counter, cursor, in_state, lock, running};

/// The time for which commits are rejected after a restart.
const RESTART_WAIT_MILLIS: i64 = 6_500;

/// A server that is restarted with an older file, and two processes: one has made a commit that the file does not have,
/// and the other has not seen it.
struct PartialRollback {
    server: RedisServer,
    writer: StoreClient,
    other: StoreClient,
    /// The run that the writer has started under the lock.
    run: RunId,
    lock: LockName,
}

impl PartialRollback {
    fn new() -> Self {
        let mut server = RedisServer::start();
        let [mut writer, other] = [StoreClient::new(&server.url()), StoreClient::new(&server.url())];
        writer.put(cursor("a", 1_800_000_000)).expect("the server takes it");
        assert_eq!(server.cli(&["SAVE"]), "OK");
        let ((run, started), lock) = (running("a", 1), lock("the lock"));
        let take = LockTake { lock: lock.clone(), holder: run, ttl: Some(Span::from_secs(300)) };
        writer.put(cursor("a", 1_800_000_060)).expect("the server takes it");
        writer.write(RecordChange::Put(started), vec![take]).expect("the server takes it");
        server.restart();
        Self { server, writer, other, run, lock }
    }

    /// The other process starts a run under the same lock.
    fn take_lock_again(&mut self) -> Result<(), UnitRefusal> {
        let (holder, run) = running("b", 2);
        let take = LockTake { lock: self.lock.clone(), holder, ttl: Some(Span::from_secs(300)) };
        until("the server replies", || match self.other.write(RecordChange::Put(run.clone()), vec![take.clone()]) {
            Err(UnitRefusal::Fault(Fault::OutcomeUnknown(_) | Fault::Unavailable(_))) => None,
            known => Some(known),
        })
    }
}

#[test]
fn commit_lost_by_a_restart_is_not_repeated_by_a_process_that_has_not_seen_it() {
    let mut test = PartialRollback::new();
    for _ in 0..3 {
        let taken = test.take_lock_again();
        assert!(matches!(taken, Err(UnitRefusal::Fault(Fault::Restarted(_)))), "{taken:?}");
    }
    beat(&test.other).expect("heartbeats continue");
    beat_until_noticed(&test.writer);
    assert_eq!(test.other.get(&cursor("a", 0).key()), Some(cursor("a", 1_800_000_060)));
    assert_gone_back(&test.other.fault());
    let_pass(&test.server);
    let taken = test.take_lock_again();
    assert!(matches!(&taken, Err(UnitRefusal::Held { holder, .. }) if *holder == test.run), "{taken:?}");
}

/// If the writer is gone, nothing else is known about its commits.
#[test]
fn commits_continue_after_a_restart_if_no_process_misses_any() {
    let mut test = PartialRollback::new();
    let taken = test.take_lock_again();
    assert!(matches!(taken, Err(UnitRefusal::Fault(Fault::Restarted(_)))), "{taken:?}");
    let left = wait_left(&test.server);
    assert!(left <= RESTART_WAIT_MILLIS, "{left} ms are left");
    let refused = StoreClient::with_memory(&test.server.url(), None).err();
    assert!(matches!(refused, Some(Fault::Restarted(_))), "a new process waits too: {refused:?}");
    test.server.cli(&["DEL", HEALING]);
    test.take_lock_again().expect("the file does not have the lock");
    let warnings = test.other.health().warnings.join("\n");
    assert!(!warnings.contains("rolled back"), "{warnings}");
}

#[test]
fn broken_connection_does_not_hold_commits() {
    let server = RedisServer::start();
    let mut client = StoreClient::new(&server.url());
    client.put(counter("a", 1)).unwrap();
    server.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    until("it reconnects", || client.put(counter("a", 2)).ok());
    assert_eq!(server.cli(&["EXISTS", HEALING]), "0");
    assert_eq!(server.cli(&["HGET", META, "server"]), run_id(&server));
}

/// Without INFO, a restart cannot be recognized, and everything else works.
#[test]
fn user_without_info_can_commit() {
    let users = vec!["user worker on >secret ~* &* +@all -info".to_owned()];
    let server = RedisServer::start_with(ServerOptions { users, ..Default::default() });
    let mut client = StoreClient::new(&format!("redis://worker:secret@127.0.0.1:{}", server.port()));
    client.put(counter("a", 1)).unwrap();
    beat(&client).expect("the server takes it");
    assert_eq!(server.cli(&["HEXISTS", META, "server"]), "0");
    assert_eq!(server.cli(&["EXISTS", HEALING]), "0");
}

fn run_id(server: &RedisServer) -> String {
    let info = server.cli(&["INFO", "server"]);
    info.lines().find_map(|line| line.strip_prefix("run_id:")).expect("a run id").trim().to_owned()
}

/// The file has the lock as it was when the file was written. Its renewals are lost, so that it has expired.
fn expired_lock_is_held_again(has_lost_commits: bool) {
    let mut server = RedisServer::start();
    let [mut client, mut other] = [StoreClient::new(&server.url()), StoreClient::new(&server.url())];
    let ((id, run), name) = (running("a", 1), lock("the lock"));
    let take = LockTake { lock: name.clone(), holder: id, ttl: Some(Span::from_secs(300)) };
    client.write(RecordChange::Put(run), vec![take]).expect("the server takes it");
    let fence = |client: &StoreClient| match client.get(&RecordKey::Lock(name.clone())) {
        Some(Record::Lock(lock)) if lock.holder == id => Some(lock.fence),
        _ => None,
    };
    let taken = fence(&client);
    let key = server.cli(&["KEYS", "{cronken}:locks:*"]);
    server.cli(&["PEXPIRE", &key, "1"]);
    until("the lock expires", || (server.cli(&["EXISTS", &key]) == "0").then_some(()));
    assert_eq!(server.cli(&["SAVE"]), "OK");
    if has_lost_commits {
        client.put(counter("a", 1)).expect("the server takes it");
    }
    server.restart();
    until("commits are rejected", || {
        let refused = other.fault();
        matches!(refused, Fault::Restarted(_) | Fault::Recovering(_)).then_some(())
    });
    let node = NodeRecord::new(NodeId::from_bits(5), "five", 1, Instant::EPOCH);
    let lost = until("a heartbeat succeeds", || block_on(client.store.beat(&node, &[(name.clone(), id)])).ok());
    assert_eq!(lost, [], "lost commits: {has_lost_commits}");
    assert_eq!(fence(&client), taken);
    let left: i64 = server.cli(&["PTTL", &key]).parse().expect("a number");
    assert!(left > 200_000, "it has its time to live: {left}");
}

#[test]
fn lock_that_has_expired_in_the_file_is_restored() {
    expired_lock_is_held_again(true);
}

#[test]
fn lock_that_has_expired_in_the_file_is_taken_again_by_a_heartbeat() {
    expired_lock_is_held_again(false);
}

/// A writer may have read the version of a heartbeat that is lost, and must not take a later one for it.
#[test]
fn versions_of_lost_heartbeats_are_not_assigned_again() {
    for is_flushed in [false, true] {
        let mut server = RedisServer::start();
        let client = StoreClient::new(&server.url());
        beat(&client).expect("the server takes it");
        assert_eq!(server.cli(&["SAVE"]), "OK");
        (0..5).for_each(|_| beat(&client).expect("the server takes it"));
        let before = server_beats(&server);
        if is_flushed {
            server.cli(&["FLUSHALL"]);
        } else {
            server.restart();
        }
        until("it beats again", || beat(&client).ok());
        assert!(server_beats(&server) > before, "{before} comes again; flushed: {is_flushed}");
    }
}

/// The number of the latest heartbeat.
fn server_beats(server: &RedisServer) -> u64 {
    server.cli(&["HGET", META, "beats"]).parse().expect("a number")
}

#[test]
fn run_that_ended_after_the_file_was_written_stays_ended() {
    let mut server = RedisServer::start();
    let mut client = StoreClient::new(&server.url());
    let (id, run) = running("a", 1);
    client.put(run.clone()).unwrap();
    assert_eq!(server.cli(&["SAVE"]), "OK");
    let ended = in_state(&run, State::Failure);
    client.put(ended.clone()).unwrap();
    server.restart();
    assert_eq!(client.get(&RecordKey::Run(id)), Some(run), "the file has it as it was");
    beat_until_noticed(&client);
    assert_eq!(client.get(&RecordKey::Run(id)), Some(ended));
}

/// Scripts merge records on the server, and the simulation has the same rules in Rust. For each pair, one process has
/// written the first record before the loss, and another one the second record after it.
#[test]
fn scripts_merge_records_as_the_simulation_does() {
    let states = [State::Waiting, State::Starting, State::Running, State::Stopping, State::Success, State::Error];
    let mut pairs: Vec<[Record; 2]> = Vec::new();
    for (one, first) in states.into_iter().enumerate() {
        for (two, second) in states.into_iter().enumerate() {
            let number = u8::try_from(1 + one * states.len() + two).expect("there are few");
            let (_, run) = running("a", number);
            pairs.push([in_state(&run, first), in_state(&run, second)]);
        }
    }
    for (index, [first, second]) in [[0, 60], [60, 0], [60, 60]].into_iter().enumerate() {
        pairs.push([first, second].map(|last| cursor(&format!("cursor {index}"), 1_800_000_000 + last)));
    }
    pairs.push([counter("state", 2), counter("state", 1)]);
    let server = RedisServer::start();
    let mut before = StoreClient::new(&server.url());
    for [first, _] in &pairs {
        before.put(first.clone()).unwrap();
    }
    server.cli(&["FLUSHALL"]);
    let mut after = StoreClient::new(&server.url());
    for [_, second] in &pairs {
        after.put(second.clone()).unwrap();
    }
    beat_until_noticed(&before);
    for [first, second] in pairs {
        let key = first.key();
        // Commits after the loss have higher seqs.
        let is_restored = wins_merge(1, &RecordChange::Put(first.clone()), Some((2, &second)), 0);
        let expected = if is_restored { &first } else { &second };
        assert_eq!(before.get(&key).as_ref(), Some(expected), "{key}");
    }
}

/// A commit whose reply was lost, and which took effect, is restored like others as soon as its writer has read it.
#[test]
fn commit_without_a_reply_is_restored() {
    let server = RedisServer::start();
    let mut client = StoreClient::new(&server.url_with("timeout=300ms"));
    client.put(counter("a", 1)).unwrap();
    let ((id, run), name) = (running("a", 1), lock("the lock"));
    let take = LockTake { lock: name.clone(), holder: id, ttl: Some(Span::from_secs(300)) };
    server.freeze();
    let sent = client.create(run.clone(), vec![take]);
    assert!(matches!(sent, Err(UnitRefusal::Fault(Fault::OutcomeUnknown(_)))), "{sent:?}");
    server.thaw();
    until("it takes effect", || client.get(&RecordKey::Run(id)));
    let held = client.get(&RecordKey::Lock(name.clone()));
    server.cli(&["FLUSHALL"]);
    beat_until_noticed(&client);
    assert_eq!(client.get(&RecordKey::Run(id)), Some(run));
    let fence = |lock: Option<Record>| match lock {
        Some(Record::Lock(lock)) => Some((lock.holder, lock.fence)),
        _ => None,
    };
    assert_eq!(fence(client.get(&RecordKey::Lock(name))), fence(held));
}

/// The only lost commit is one whose reply was lost.
#[test]
fn lost_commit_without_a_reply_is_detected() {
    let mut server = RedisServer::start();
    let mut client = StoreClient::new(&server.url_with("timeout=300ms"));
    client.put(counter("a", 1)).unwrap();
    assert_eq!(server.cli(&["SAVE"]), "OK");
    let (id, run) = running("a", 1);
    server.freeze();
    let sent = client.create(run.clone(), Vec::new());
    assert!(matches!(sent, Err(UnitRefusal::Fault(Fault::OutcomeUnknown(_)))), "{sent:?}");
    server.thaw();
    until("it takes effect", || client.get(&RecordKey::Run(id)));
    server.restart();
    beat_until_noticed(&client);
    assert_eq!(client.get(&RecordKey::Run(id)), Some(run));
}

//! Cases about servers that are killed and started again with their data.

use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;

use cronhold_core::State;
use cronhold_core::record::{Record, RecordKey};
use cronhold_schedule::Span;

use super::client::{ClientProcess, assert_without_reply, unless_transient};
use super::waiting::until;
use super::{FailingServers, LONG_TTL};
use crate::conformance::block_on;
use crate::conformance::samples::{at, job_state, lock_name, node, run_id, run_in};
use crate::{Fault, Query, Store, UnitReceipt, UnitRefusal};

/// Expires while a server is killed and started again, or soon after.
const SHORT_TTL: Span = Span::from_millis(500);

/// How often a server is killed in one case.
const ROUNDS: u64 = 3;

/// Commits that are confirmed before a server is killed.
const CONFIRMED_MIN: usize = 20;

/// Commits of one round at most. A server that is killed ends the round long before.
const COMMITS_MAX: u64 = 1_000_000;

/// Processes that increment a counter, and the increments of each, which are also those between two outages.
const PROCESSES: usize = 4;
const INCREMENTS: usize = 15;

/// Pieces of an output, and the length of each.
const PIECES: u64 = 40;
const PIECE: usize = 10_000;

/// A server is killed while a process commits: everything that was confirmed is there when it is back, and the commit
/// that was under way takes effect once.
pub fn killed_server_keeps_confirmed_commits(servers: &dyn FailingServers) {
    let mut client = ClientProcess::start(servers);
    let reader = ClientProcess::start(servers);
    for round in 0..ROUNDS {
        let (sender, confirmed) = mpsc::channel();
        let committing = thread::spawn(move || {
            for number in 0..COMMITS_MAX {
                let record = job_state(&format!("{round} {number}"), number + 1);
                let unit = client.unit().put(record.clone(), None);
                match client.commit(unit.clone()) {
                    Ok(_) => drop(sender.send(record)),
                    Err(UnitRefusal::Fault(fault)) => {
                        assert_without_reply(&fault);
                        return (client, unit, record);
                    }
                    Err(refusal) => panic!("{refusal}"),
                }
            }
            panic!("the server was not killed");
        });
        let mut records: Vec<Record> = confirmed.iter().take(CONFIRMED_MIN).collect();
        servers.kill();
        let (committer, unit, last) = committing.join().expect("it ends with the first failure");
        client = committer;
        records.extend(confirmed.try_iter());
        servers.start();
        let keys: Vec<RecordKey> = records.iter().map(Record::key).collect();
        for (record, found) in records.iter().zip(reader.load(&keys)) {
            assert_eq!(found.map(|stored| stored.record).as_ref(), Some(record), "{}", record.key());
        }
        assert_eq!(client.settle(&unit), Ok(UnitReceipt::default()));
        assert_eq!(reader.get(&last.key()), Some(last));
    }
}

/// Several processes increment one counter while the servers are killed and suspended. Each increment has a record of its
/// own, by which its process finds out whether a commit without a reply took effect. None is lost or doubled.
pub fn increments_of_several_processes_add_up_across_outages(servers: &dyn FailingServers) {
    let counter_key = job_state("counter", 0).key();
    let clients: Vec<ClientProcess> = (0..PROCESSES).map(|_| ClientProcess::start(servers)).collect();
    let reader = ClientProcess::start(servers);
    // Without a buffer, so that the processes go on only while the case receives.
    let (sender, increments) = mpsc::sync_channel(0);
    let running: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(process, mut client)| {
            let sender = sender.clone();
            thread::spawn(move || {
                for number in 0..INCREMENTS {
                    client.increment(&format!("{process} {number}"));
                    let _ = sender.send(());
                }
            })
        })
        .collect();
    drop(sender);
    for outage in 0..ROUNDS {
        assert_eq!(increments.iter().take(INCREMENTS).count(), INCREMENTS);
        if outage % 2 == 0 {
            servers.kill();
            servers.start();
        } else {
            servers.suspend();
            let read = block_on(reader.store.load(std::slice::from_ref(&counter_key)));
            assert_without_reply(&read.expect_err("nothing replies"));
            servers.resume();
        }
    }
    assert_eq!(increments.iter().count(), PROCESSES * INCREMENTS - INCREMENTS * ROUNDS as usize);
    running.into_iter().for_each(|process| process.join().expect("every increment is done"));
    assert_eq!(reader.get(&counter_key), Some(job_state("counter", (PROCESSES * INCREMENTS) as u64)));
}

/// A handle that was open before the restart connects again by itself, for every kind of request.
pub fn every_request_works_again_after_a_restart(servers: &dyn FailingServers) {
    let mut client = ClientProcess::start(servers);
    let (id, node) = (run_id(1, 1), node(1, "n"));
    let run = run_in(id, "a", State::Running, Some(1));
    client.put(&run);
    for round in 1..=ROUNDS {
        servers.kill();
        servers.start();
        let store = &client.store;
        let found = until("records can be read", || unless_transient(block_on(store.load(&[run.key()]))));
        assert_eq!(found[0].as_ref().map(|stored| &stored.record), Some(&run));
        let query = Query::Unfinished { node: None, after: None };
        let page = until("lists can be read", || unless_transient(block_on(store.page(&query, 9))));
        assert_eq!(page.records.len(), 1);
        until("due records can be read", || unless_transient(block_on(store.due(None, at(0), 9))));
        until("the clock can be read", || unless_transient(block_on(store.time())));
        until("a writer enrolls", || unless_transient(block_on(store.enroll())));
        let appended =
            until("output can be appended", || unless_transient(block_on(store.append(id, round - 1, b"x"))));
        assert_eq!(appended, round);
        let chunk = until("output can be read", || unless_transient(block_on(store.read(id, 0, 9))));
        assert_eq!(chunk.bytes.len() as u64, round);
        assert_eq!(client.beat(&node, &[]), []);
        client.put(&job_state("a", round));
    }
}

/// While a server is down, health names the trouble; afterwards, nothing is left of it.
pub fn health_shows_an_outage_while_it_lasts(servers: &dyn FailingServers) {
    let mut client = ClientProcess::start(servers);
    client.put(&job_state("a", 1));
    let before = block_on(client.store.health());
    assert_eq!(before.trouble, None);
    servers.kill();
    // The first request may have been sent before the connection broke.
    until("health shows it", || {
        let unit = client.unit().put(job_state("refused", 1), None);
        assert_without_reply(&client.expect_commit_fault(unit));
        block_on(client.store.health()).trouble
    });
    let read = block_on(client.store.load(&[job_state("a", 1).key()]));
    assert!(matches!(read, Err(Fault::Unavailable(_))), "{read:?}");
    servers.start();
    client.put(&job_state("a", 2));
    let after = block_on(client.store.health());
    assert_eq!((after.trouble, after.warnings), (None, before.warnings));
    assert_eq!(client.get(&job_state("refused", 1).key()), None, "no server was there to take it");
}

/// A restart takes no lock from its holder, whose heartbeats go on.
pub fn locks_are_renewed_after_a_restart(servers: &dyn FailingServers) {
    let (mut client, mut other) = (ClientProcess::start(servers), ClientProcess::start(servers));
    let (mine, theirs, lock, node) = (run_id(1, 1), run_id(1, 2), lock_name("l"), node(1, "n"));
    client.put_with_locks(&run_in(mine, "a", State::Running, Some(1)), &[(lock.clone(), mine)]);
    let fence = client.lock(&lock).expect("it was taken").fence;
    servers.kill();
    servers.start();
    assert_eq!(client.beat(&node, &[(lock.clone(), mine)]), []);
    let unit = other.unit().take(&lock, theirs, Some(LONG_TTL));
    assert_eq!(other.settle(&unit), Err(UnitRefusal::Held { lock: lock.clone(), holder: mine }));
    let held = client.lock(&lock).expect("it was renewed");
    assert_eq!((held.holder, held.fence), (mine, fence));
}

/// A lock without heartbeats expires, although the server was restarted meanwhile.
pub fn lock_of_a_dead_holder_expires_after_a_restart(servers: &dyn FailingServers) {
    let (mut client, mut other) = (ClientProcess::start(servers), ClientProcess::start(servers));
    let (mine, theirs, lock) = (run_id(1, 1), run_id(1, 2), lock_name("l"));
    let unit = client.unit().take(&lock, mine, Some(SHORT_TTL));
    let before = client.commit(unit).expect("it is free").fences[0].1;
    servers.kill();
    servers.start();
    until("it has expired", || {
        let unit = other.unit().take(&lock, theirs, Some(LONG_TTL));
        match other.settle(&unit) {
            Ok(_) => Some(()),
            Err(UnitRefusal::Held { holder, .. }) if holder == mine => None,
            Err(refusal) => panic!("{refusal}"),
        }
    });
    let held = other.lock(&lock).expect("it was taken");
    assert!(held.holder == theirs && held.fence > before, "{held:?} comes after fence {before}");
}

/// A process sends each piece of an output until it is confirmed. The output has each piece once, although a server was
/// killed between them and then suspended.
pub fn output_is_whole_after_a_restart_and_a_suspension(servers: &dyn FailingServers) {
    let client = ClientProcess::start(servers);
    let (id, store) = (run_id(1, 1), client.store.clone());
    let piece = |number: u64| vec![b'a' + u8::try_from(number % 26).expect("a letter"); PIECE];
    // Without a buffer, so that the process waits for the case before each attempt.
    let (sender, events) = mpsc::sync_channel(0);
    let appending = thread::spawn(move || {
        for number in 0..PIECES {
            let (from, bytes) = (number * PIECE as u64, piece(number));
            let length = until("a piece is appended", || {
                let appended = unless_transient(block_on(store.append(id, from, &bytes)));
                let _ = sender.send((number, appended.is_some()));
                appended
            });
            assert_eq!(length, from + PIECE as u64);
        }
    });
    let wait_for = |wanted: u64, is_done: bool| {
        let seen = events.iter().find(|(number, done)| *number >= wanted && *done == is_done);
        assert!(seen.is_some(), "it has reached the end");
    };
    wait_for(PIECES / 4, true);
    servers.kill();
    wait_for(0, false);
    servers.start();
    wait_for(PIECES / 2, true);
    servers.suspend();
    wait_for(0, false);
    servers.resume();
    drop(events);
    appending.join().expect("all pieces are appended");
    let expected: Vec<u8> = (0..PIECES).flat_map(piece).collect();
    let found = until("it can be read", || unless_transient(block_on(client.store.read(id, 0, expected.len() + 1))));
    assert_eq!(found.length, expected.len() as u64);
    assert!(found.bytes == expected, "the bytes differ");
}

/// Changes of others are reported again after a restart, without anything that a handle has to do.
pub fn hints_resume_after_a_restart(servers: &dyn FailingServers) {
    let (mut writer, listener) = (ClientProcess::start(servers), ClientProcess::start(servers));
    for round in 0..ROUNDS {
        let record = job_state(&format!("{round}"), 0);
        let mut number = 0;
        // Changes before the listener is connected again are not reported, so the case writes until a hint arrives.
        until("a hint", || {
            number += 1;
            writer.put(&job_state(&format!("{round}"), number));
            pending_hints(&*listener.store).contains(&record.key()).then_some(())
        });
        servers.kill();
        servers.start();
    }
}

/// The pending hints.
fn pending_hints(store: &dyn Store) -> Vec<RecordKey> {
    match pin!(store.hints()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(hints) => hints.into_iter().map(|hint| hint.key).collect(),
        Poll::Pending => Vec::new(),
    }
}

//! Cases about servers that have lost their data. A process that has seen the data notices the loss before it commits
//! anything on the empty store. What it does then depends on the store, see [`LossResponse`].

use std::sync::Arc;

use cronhold_core::State;
use cronhold_core::record::{Cursor, Record, RecordKey};

use super::client::{ClientProcess, LockOfRun, assert_without_reply};
use super::waiting::until;
use super::{FailingServers, LossResponse};
use crate::conformance::block_on;
use crate::conformance::samples::{at, cursor, job, job_state, lock_name, node, run_id, run_in};
use crate::{Fault, UnitRefusal};

/// A cursor whose last decided occurrence is at this second.
fn cursor_at(last: i64) -> Record {
    match cursor("a", "s", Some(at(1_000))) {
        Record::Cursor(cursor) => Record::Cursor(Arc::new(Cursor { last: Some(at(last)), ..(*cursor).clone() })),
        other => panic!("a cursor was expected: {other:?}"),
    }
}

/// Commits until the process notices the loss, and checks that it responds as the store promises.
fn commit_until_noticed(servers: &dyn FailingServers, client: &mut ClientProcess) {
    let fault = until("the loss is noticed", || {
        let unit = client.unit().put(job_state("refused", 1), None);
        match client.expect_commit_fault(unit) {
            Fault::Restarted(_) => None,
            fault @ (Fault::Unavailable(_) | Fault::OutcomeUnknown(_)) => {
                assert_without_reply(&fault);
                None
            }
            fault => Some(fault),
        }
    });
    match servers.loss_response() {
        LossResponse::Restores => assert!(matches!(fault, Fault::Recovering(_)), "{fault}"),
        LossResponse::Refuses => assert!(matches!(fault, Fault::Permanent(_)), "{fault}"),
    }
}

/// Sends heartbeats until they have noticed the loss too, and returns the locks that they report as lost; `None` if they
/// are refused.
fn beat_after_loss(
    servers: &dyn FailingServers,
    client: &ClientProcess,
    locks: &[LockOfRun],
) -> Option<Vec<LockOfRun>> {
    until("a heartbeat has an answer", || match block_on(client.store.beat(&node(1, "n"), locks)) {
        Ok(lost) => Some(Some(lost)),
        Err(fault) if fault.is_transient() => None,
        Err(fault) => {
            assert_eq!(servers.loss_response(), LossResponse::Refuses, "{fault}");
            Some(None)
        }
    })
}

/// A process restores everything that it has written and the store has lost, and commits again afterwards.
pub fn lost_records_and_locks_are_restored(servers: &dyn FailingServers) {
    let mut client = ClientProcess::start(servers);
    let (id, lock) = (run_id(1, 1), lock_name("l"));
    let run = run_in(id, "a", State::Running, Some(1));
    let records = [job("a", "kept"), job_state("a", 1), cursor_at(60)];
    records.iter().for_each(|record| client.put(record));
    client.put_with_locks(&run, &[(lock.clone(), id)]);
    let gone = job("gone", "deleted").key();
    client.put(&job("gone", "deleted"));
    client.delete(&gone);
    let fence = client.lock(&lock).expect("it was taken").fence;

    servers.forget();
    commit_until_noticed(servers, &mut client);
    let newcomer = servers.open();
    let found = |key: &RecordKey| {
        let found = until("records can be read", || block_on(newcomer.load(std::slice::from_ref(key))).ok());
        found.into_iter().next().flatten().map(|stored| stored.record)
    };
    let restores = servers.loss_response() == LossResponse::Restores;
    for record in records.iter().chain([&run]) {
        let expected = restores.then_some(record);
        assert_eq!(found(&record.key()).as_ref(), expected, "{}", record.key());
    }
    assert_eq!(found(&gone), None, "what was deleted stays deleted");
    commit_until_noticed(servers, &mut client);
    if !restores {
        return;
    }
    let held = client.lock(&lock).expect("it is held again");
    assert_eq!((held.holder, held.fence), (id, fence));
    assert_eq!(beat_after_loss(servers, &client, &[(lock.clone(), id)]), Some(Vec::new()));
    servers.end_recovery();
    client.put(&job_state("a", 2));
    let due = until("due records can be read", || block_on(newcomer.due(None, at(2_000), 9)).ok());
    assert!(due.iter().any(|obligation| obligation.key == records[2].key()), "lists are restored too: {due:?}");
    let theirs = client.unit().take(&lock, run_id(1, 2), None);
    assert_eq!(client.settle(&theirs), Err(UnitRefusal::Held { lock, holder: id }));
}

/// Each process restores what it has written last, in any order.
pub fn each_process_restores_its_own_writes(servers: &dyn FailingServers) {
    let (mut one, mut other) = (ClientProcess::start(servers), ClientProcess::start(servers));
    one.put(&job("one", "of one"));
    other.put(&job("other", "of other"));
    one.put(&cursor_at(60));
    other.put(&cursor_at(120));
    servers.forget();
    commit_until_noticed(servers, &mut one);
    commit_until_noticed(servers, &mut other);
    if servers.loss_response() == LossResponse::Restores {
        for record in [job("one", "of one"), job("other", "of other"), cursor_at(120)] {
            assert_eq!(one.get(&record.key()), Some(record));
        }
        servers.end_recovery();
        one.put(&job_state("a", 1));
        other.put(&job_state("b", 1));
    }
}

/// A newcomer works on the empty store before the others notice the loss. Nothing that was done is undone: the larger
/// cursor and the more advanced run win, and other records of the newcomer stay.
pub fn restored_records_never_regress(servers: &dyn FailingServers) {
    let mut old = ClientProcess::start(servers);
    let [ended, started] = [run_id(1, 1), run_id(1, 2)];
    let run = |id, state| run_in(id, "a", state, Some(1));
    for record in [
        run(ended, State::Failure),
        run(started, State::Starting),
        cursor_at(120),
        job_state("a", 1),
        job_state("b", 1),
    ] {
        old.put(&record);
    }
    servers.forget();
    let mut newcomer = ClientProcess::start(servers);
    let written = [run(ended, State::Running), run(started, State::Running), cursor_at(60), job_state("a", 7)];
    written.iter().for_each(|record| newcomer.put(record));
    commit_until_noticed(servers, &mut old);
    let expected = match servers.loss_response() {
        LossResponse::Refuses => written.to_vec(),
        LossResponse::Restores => {
            let [_, further, _, later] = written;
            vec![run(ended, State::Failure), further, cursor_at(120), later, job_state("b", 1)]
        }
    };
    for record in expected {
        assert_eq!(newcomer.get(&record.key()), Some(record));
    }
}

/// A lock has one holder, also if another process took it from a store that had lost it: the heartbeats of the former
/// holder report that.
pub fn lock_that_another_took_after_a_loss_is_reported_as_lost(servers: &dyn FailingServers) {
    let mut client = ClientProcess::start(servers);
    let (mine, theirs, lock) = (run_id(1, 1), run_id(1, 2), lock_name("l"));
    client.put_with_locks(&run_in(mine, "a", State::Running, Some(1)), &[(lock.clone(), mine)]);
    servers.forget();
    let mut newcomer = ClientProcess::start(servers);
    newcomer.put_with_locks(&run_in(theirs, "a", State::Running, Some(2)), &[(lock.clone(), theirs)]);
    let lost = beat_after_loss(servers, &client, &[(lock.clone(), mine)]);
    assert!(lost.is_none_or(|lost| lost == [(lock.clone(), mine)]), "the former holder keeps the lock");
    assert_eq!(newcomer.lock(&lock).map(|held| held.holder), Some(theirs));
}

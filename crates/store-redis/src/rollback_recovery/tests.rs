//! What the journal keeps, and for how long commits are rejected.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::RollbackRecovery;
use super::commit_hold::CommitHold;
use super::journal::{LockWrite, RecordWrite, WriteJournal};
use crate::client::NamespaceClient;
use crate::connections::RedisConnections;
use crate::cronken::PeerFlag;
use crate::url::RedisUrl;

const JOB: u8 = 1;
const RUN: u8 = 6;

fn written(kind: u8, field: &str, is_lasting: bool) -> RecordWrite {
    RecordWrite { kind, field: field.to_owned(), body: b"body".to_vec(), projection: Vec::new(), is_lasting }
}

fn took(lock: &str, holder: &str, fence: Option<u64>) -> LockWrite {
    let (lock, holder) = (lock.to_owned(), holder.to_owned());
    LockWrite { lock, holder, fence: fence.unwrap_or_default(), ttl_millis: 20_000, is_taken: fence.is_some() }
}

fn fields(journal: &WriteJournal, since: u64) -> Vec<String> {
    journal.written_after(since).records.into_iter().map(|entry| entry.write.field).collect()
}

fn locks(journal: &WriteJournal) -> Vec<String> {
    journal.written_after(0).locks.into_iter().map(|entry| entry.write.lock).collect()
}

#[test]
fn journal_keeps_the_last_write_of_each_record() {
    let (mut journal, now) = (WriteJournal::default(), Instant::now());
    journal.record(5, "v5", vec![written(JOB, "a", true), written(JOB, "b", true)], Vec::new(), now);
    journal.record(7, "v7", vec![written(JOB, "a", true)], Vec::new(), now);
    assert_eq!(fields(&journal, 0), ["a", "b"]);
    assert_eq!(fields(&journal, 5), ["a"], "the store still has the other");
    assert_eq!(fields(&journal, 7), [""; 0]);
    journal.forget(JOB, "a", 6);
    assert_eq!(fields(&journal, 0), ["a", "b"], "this process has written it since");
    journal.forget(JOB, "a", 8);
    assert_eq!(fields(&journal, 0), ["b"], "another process has written it since");
    let lost = &journal.written_after(0).records[0];
    assert_eq!(lost.write.stored_text(&lost.version, lost.seq), b"v5 0000000000000005 body");
}

#[test]
fn finished_runs_are_dropped_after_an_hour() {
    let (mut journal, now) = (WriteJournal::default(), Instant::now());
    journal.record(1, "v", vec![written(RUN, "ends", true), written(RUN, "lives", true)], Vec::new(), now);
    journal.record(2, "v", vec![written(RUN, "ends", false)], Vec::new(), now);
    journal.record(3, "v", Vec::new(), Vec::new(), now + Duration::from_secs(3_600));
    assert_eq!(fields(&journal, 0), ["ends", "lives"]);
    journal.record(4, "v", Vec::new(), Vec::new(), now + Duration::from_secs(4_000));
    assert_eq!(fields(&journal, 0), ["lives"]);
}

#[test]
fn finished_runs_are_bounded() {
    let (mut journal, now) = (WriteJournal::default(), Instant::now());
    for seq in 0..30_000 {
        journal.record(seq, "v", vec![written(RUN, &format!("{seq:08}"), false)], Vec::new(), now);
    }
    let kept = fields(&journal, 0);
    assert_eq!((kept.len(), kept[0].as_str()), (20_000, "00010000"));
}

#[test]
fn locks_are_kept_until_their_runs_end() {
    let (mut journal, now) = (WriteJournal::default(), Instant::now());
    journal.record(1, "v", vec![written(RUN, "r", true)], vec![took("lock", "r", Some(9))], now);
    journal.record(2, "v", Vec::new(), vec![took("event", "nobody", Some(1))], now);
    assert_eq!(locks(&journal), ["lock"]);
    assert_eq!(journal.written_after(0).locks[0].write.restored_token("v"), "r:9:v:20000:brought-back");
    journal.record(3, "v", Vec::new(), vec![took("lock", "other", None)], now);
    assert_eq!(locks(&journal), ["lock"], "only its holder frees it");
    journal.record(4, "v", vec![written(RUN, "r", false)], Vec::new(), now);
    assert_eq!(locks(&journal), [""; 0], "its run has ended");
    journal.record(5, "v", vec![written(RUN, "r", true)], vec![took("lock", "r", None)], now);
    assert_eq!(locks(&journal), [""; 0]);
}

#[test]
fn commit_after_recovery_replaces_an_entry_with_a_higher_seq() {
    let (mut journal, now) = (WriteJournal::default(), Instant::now());
    journal.record(7, "v7", vec![written(JOB, "a", true)], Vec::new(), now);
    journal.record(5, "v5", vec![written(JOB, "a", true)], Vec::new(), now);
    assert_eq!(journal.written_after(0).records[0].version, "v7", "only its reply arrived later");
    journal.start_generation();
    journal.record(3, "v3", vec![written(JOB, "a", true)], Vec::new(), now);
    assert_eq!(journal.written_after(0).records[0].version, "v3");
}

#[test]
fn record_changed_by_others_is_dropped_unless_written_again() {
    let (mut journal, now) = (WriteJournal::default(), Instant::now());
    let deleted = RecordWrite { body: Vec::new(), ..written(JOB, "c", false) };
    journal.record(1, "v1", vec![written(JOB, "a", true), written(JOB, "b", true), deleted], Vec::new(), now);
    let verified = journal.versions_after(None, 2);
    let rest = journal.versions_after(Some(&verified[1].0), 2);
    let stored: Vec<_> = verified.iter().chain(&rest).map(|(_, version)| version).collect();
    assert_eq!(stored, ["v1", "v1"], "a deletion is not verified");
    journal.record(2, "v2", vec![written(JOB, "b", true)], Vec::new(), now);
    for (id, version) in &verified {
        journal.forget_version(id, version);
    }
    assert_eq!(fields(&journal, 0), ["b", "c"]);
}

#[test]
fn hold_covers_the_longest_lease() {
    let hold = CommitHold::default();
    assert_eq!(hold.millis(), 45_500);
    hold.observe_lease(10_000);
    assert_eq!(hold.millis(), 45_500, "other nodes may have runs with longer leases");
    hold.observe_lease(90_000);
    hold.observe_lease(20_000);
    assert_eq!(hold.millis(), 90_000);
    hold.set_min(1);
    assert_eq!(hold.millis(), 90_000);
}

/// The marker that a job was removed lives for years. It protects no program.
#[test]
fn recovery_does_not_wait_for_reserved_locks() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let url = RedisUrl::parse("redis://localhost").expect("a URL");
    let connections = RedisConnections::new(&url, runtime.handle().clone());
    let client = Arc::new(NamespaceClient::new(connections, &url.settings.namespace, 1));
    let recovery = RollbackRecovery::new(client, Arc::new(PeerFlag::new(&url.settings)), "process", None);
    let years = 10 * 365 * 86_400_000;
    let marker = LockWrite { ttl_millis: years, ..took("#cronhold/removed/a", "nobody", Some(1)) };
    recovery.record_commit(1, "v", Vec::new(), vec![marker]);
    assert_eq!(recovery.hold.millis(), 45_500);
    let lock = LockWrite { ttl_millis: 90_000, ..took("a", "r", Some(1)) };
    recovery.record_commit(2, "v", Vec::new(), vec![lock]);
    assert_eq!(recovery.hold.millis(), 90_000);
}

#[test]
fn marker_locks_are_kept_for_an_hour_or_until_released() {
    let mark = |lock: &str| LockWrite { ttl_millis: 86_400_000, ..took(lock, "nobody", Some(1)) };
    let (mut journal, now) = (WriteJournal::default(), Instant::now());
    journal.record(1, "v", Vec::new(), vec![mark("#cronhold/removed/a"), mark("#cronhold/removed/b")], now);
    journal.record(2, "v", Vec::new(), vec![took("#cronhold/event/1", "nobody", Some(1)), mark("no mark")], now);
    assert_eq!(locks(&journal), ["#cronhold/removed/a", "#cronhold/removed/b"]);
    journal.record(3, "v", Vec::new(), vec![took("#cronhold/removed/a", "nobody", None)], now);
    assert_eq!(locks(&journal), ["#cronhold/removed/b"]);
    assert!(journal.written_after(1).locks.is_empty(), "the store still has it");
    journal.record(4, "v", Vec::new(), Vec::new(), now + Duration::from_secs(4_000));
    assert_eq!(locks(&journal), [""; 0]);
}

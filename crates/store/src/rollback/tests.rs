//! What the journal keeps, for how long commits are rejected, and which of two records wins.

use std::sync::Arc;

use cronhold_core::decision::{LockRelease, LockTake, RecordChange};
use cronhold_core::record::{
    ClaimedRanges, Cursor, JobState, LockName, Record, RecordKey, RecordVersion, Run, ScheduleId,
};
use cronhold_core::{JobId, JobUid, RunId, RunNumber, State};
use cronhold_schedule::{Instant, Span};

use super::{CommitHold, RollbackTracker, UnitWrites, WriteJournal, wins_merge};

const NOW: Span = Span::from_secs(1_000);

fn job_id(name: &str) -> JobId {
    JobId::parse(name).expect("an id")
}

fn state(name: &str) -> RecordChange {
    RecordChange::Put(Record::JobState(Arc::new(JobState::new(job_id(name)))))
}

fn run_id(name: &str) -> RunId {
    RunId::from_key(Instant::EPOCH, name)
}

fn run(name: &str, state: State) -> RecordChange {
    let id = run_id(name);
    let blank = Run::blank(id, RunNumber(1), job_id(name), JobUid::from_bits(7), Instant::EPOCH);
    RecordChange::Put(Record::Run(Arc::new(Run { state, ..blank })))
}

fn cursor(last: Option<i64>) -> RecordChange {
    RecordChange::Put(Record::Cursor(Arc::new(Cursor {
        job: job_id("a"),
        schedule: ScheduleId::parse("s").expect("an id"),
        since: Instant::EPOCH,
        last: last.map(Instant::from_secs),
        next: None,
        wake: None,
        revision: 1,
        zones: "2026a".into(),
        generation: 0,
        follows: None,
        at_start: false,
        streak: None,
        claimed: ClaimedRanges::default(),
    })))
}

fn lock_name(name: &str) -> LockName {
    LockName::parse(name).expect("a name")
}

fn take(lock: &str, holder: &str, secs: u64) -> LockTake {
    LockTake { lock: lock_name(lock), holder: run_id(holder), ttl: Some(Span::from_secs(secs)) }
}

fn version(seq: u64) -> RecordVersion {
    RecordVersion::new(1, seq)
}

fn writes(seq: u64, changes: Vec<RecordChange>, take: Vec<LockTake>) -> UnitWrites {
    UnitWrites { version: version(seq), changes, take, free: Vec::new() }
}

fn freed(lock: &str, holder: &str) -> UnitWrites {
    let free = vec![LockRelease { lock: lock_name(lock), holder: run_id(holder) }];
    UnitWrites { free, ..writes(0, Vec::new(), Vec::new()) }
}

/// The jobs of the records that are restored.
fn jobs(journal: &WriteJournal, since: u64) -> Vec<String> {
    let job = |key: RecordKey| match key {
        RecordKey::JobState(job) => job.to_string(),
        RecordKey::Run(run) => {
            let names = ["ends", "lives"].into_iter().find(|name| run_id(name) == run);
            names.unwrap_or("a run").to_owned()
        }
        other => other.to_string(),
    };
    let mut jobs: Vec<_> = journal.lost_after(since).records.iter().map(|entry| job(entry.change.key())).collect();
    jobs.sort();
    jobs
}

fn locks(journal: &WriteJournal, since: u64) -> Vec<String> {
    journal.lost_after(since).locks.into_iter().map(|entry| entry.take.lock.to_string()).collect()
}

#[test]
fn journal_keeps_the_last_write_of_each_record() {
    let mut journal = WriteJournal::default();
    journal.record(5, writes(5, vec![state("a"), state("b")], Vec::new()), &[], NOW);
    journal.record(7, writes(7, vec![state("a")], Vec::new()), &[], NOW);
    assert_eq!(jobs(&journal, 0), ["a", "b"]);
    assert_eq!(jobs(&journal, 5), ["a"], "the store still has the other");
    assert_eq!(jobs(&journal, 7), [""; 0]);
    let key = RecordKey::JobState(job_id("a"));
    journal.forget(&key, 6);
    assert_eq!(jobs(&journal, 0), ["a", "b"], "this process has written it since");
    journal.forget(&key, 8);
    assert_eq!(jobs(&journal, 0), ["b"], "another process has written it since");
}

#[test]
fn finished_runs_are_dropped_after_an_hour() {
    let mut journal = WriteJournal::default();
    let started = vec![run("ends", State::Running), run("lives", State::Running)];
    journal.record(1, writes(1, started, Vec::new()), &[], NOW);
    journal.record(2, writes(2, vec![run("ends", State::Success)], Vec::new()), &[], NOW);
    journal.record(3, writes(3, Vec::new(), Vec::new()), &[], NOW.plus(Span::from_secs(3_600)));
    assert_eq!(jobs(&journal, 0), ["ends", "lives"]);
    journal.record(4, writes(4, Vec::new(), Vec::new()), &[], NOW.plus(Span::from_secs(4_000)));
    assert_eq!(jobs(&journal, 0), ["lives"]);
}

#[test]
fn finished_runs_are_bounded() {
    let mut journal = WriteJournal::default();
    for seq in 0..30_000 {
        let ended = run(&format!("{seq}"), State::Failure);
        journal.record(seq, writes(seq, vec![ended], Vec::new()), &[], NOW);
    }
    let kept = journal.lost_after(0).records;
    assert_eq!((kept.len(), kept.iter().map(|entry| entry.seq).min()), (20_000, Some(10_000)));
}

#[test]
fn locks_are_kept_until_their_runs_end() {
    let mut journal = WriteJournal::default();
    let started = writes(1, vec![run("r", State::Running)], vec![take("lock", "r", 20)]);
    journal.record(1, started, &[(lock_name("lock"), 9)], NOW);
    journal.record(2, writes(2, Vec::new(), vec![take("event", "nobody", 20)]), &[], NOW);
    assert_eq!(locks(&journal, 0), ["lock"]);
    assert_eq!(journal.lost_after(0).locks[0].fence, Some(9));
    assert_eq!(locks(&journal, 5), ["lock"], "the store may have lost its renewals");
    journal.record(3, freed("lock", "other"), &[], NOW);
    assert_eq!(locks(&journal, 0), ["lock"], "only its holder frees it");
    journal.record(4, writes(4, vec![run("r", State::Success)], Vec::new()), &[], NOW);
    assert_eq!(locks(&journal, 0), [""; 0], "its run has ended");
    journal.record(5, writes(5, vec![run("r", State::Running)], Vec::new()), &[], NOW);
    journal.record(6, freed("lock", "r"), &[], NOW);
    assert_eq!(locks(&journal, 0), [""; 0]);
}

#[test]
fn commit_after_recovery_replaces_an_entry_with_a_higher_seq() {
    let mut journal = WriteJournal::default();
    journal.record(7, writes(7, vec![state("a")], Vec::new()), &[], NOW);
    journal.record(5, writes(5, vec![state("a")], Vec::new()), &[], NOW);
    assert_eq!(journal.lost_after(0).records[0].version, version(7), "only its reply arrived later");
    journal.start_generation();
    journal.record(3, writes(3, vec![state("a")], Vec::new()), &[], NOW);
    assert_eq!(journal.lost_after(0).records[0].version, version(3));
}

#[test]
fn record_changed_by_others_is_dropped_unless_written_again() {
    let mut journal = WriteJournal::default();
    let deleted = RecordChange::Delete(RecordKey::JobState(job_id("c")));
    journal.record(1, writes(1, vec![state("a"), state("b"), deleted], Vec::new()), &[], NOW);
    let verified = journal.versions_after(None, 2);
    assert_eq!(journal.versions_after(Some(&verified[1].0), 2), [], "a deletion is not verified");
    assert_eq!(verified.iter().map(|(_, version)| *version).collect::<Vec<_>>(), [version(1); 2]);
    journal.record(2, writes(2, vec![state("b")], Vec::new()), &[], NOW);
    for (key, version) in &verified {
        journal.forget_version(key, *version);
    }
    assert_eq!(jobs(&journal, 0), ["b", "c"]);
}

#[test]
fn marker_locks_are_kept_for_an_hour_or_until_released() {
    let mark = |lock: &str| take(lock, "nobody", 86_400);
    let mut journal = WriteJournal::default();
    let marks = vec![mark("#cronhold/removed/a"), mark("#cronhold/removed/b")];
    journal.record(1, writes(1, Vec::new(), marks), &[], NOW);
    let others = vec![take("#cronhold/event/1", "nobody", 20), mark("no mark")];
    journal.record(2, writes(2, Vec::new(), others), &[], NOW);
    assert_eq!(locks(&journal, 0), ["#cronhold/removed/a", "#cronhold/removed/b"]);
    journal.record(3, freed("#cronhold/removed/a", "nobody"), &[], NOW);
    assert_eq!(locks(&journal, 0), ["#cronhold/removed/b"]);
    assert!(locks(&journal, 1).is_empty(), "the store still has it");
    journal.record(4, writes(4, Vec::new(), Vec::new()), &[], NOW.plus(Span::from_secs(4_000)));
    assert_eq!(locks(&journal, 0), [""; 0]);
}

#[test]
fn hold_covers_the_longest_lease() {
    let hold = CommitHold::default();
    assert_eq!(hold.span(), Span::from_millis(45_500));
    hold.observe_lease(Span::from_secs(10));
    assert_eq!(hold.span(), Span::from_millis(45_500), "other nodes may have runs with longer leases");
    hold.observe_lease(Span::from_secs(90));
    hold.observe_lease(Span::from_secs(20));
    assert_eq!(hold.span(), Span::from_secs(90));
    hold.set_min(Span::from_millis(1));
    assert_eq!(hold.span(), Span::from_secs(90));
}

/// The marker that a job was removed lives for years. It protects no program.
#[test]
fn recovery_does_not_wait_for_reserved_locks() {
    let tracker = RollbackTracker::default();
    let marker = take("#cronhold/removed/a", "nobody", 10 * 365 * 86_400);
    tracker.record_commit(1, writes(1, Vec::new(), vec![marker]), &[], NOW);
    assert_eq!(tracker.hold().span(), Span::from_millis(45_500));
    tracker.record_commit(2, writes(2, Vec::new(), vec![take("a", "r", 90)]), &[], NOW);
    assert_eq!(tracker.hold().span(), Span::from_secs(90));
}

#[test]
fn unit_without_a_reply_is_journaled_when_it_is_read() {
    let tracker = RollbackTracker::default();
    let unit = writes(1, vec![run("r", State::Running)], vec![take("lock", "r", 20)]);
    tracker.record_unconfirmed(unit);
    assert!(tracker.has_unconfirmed() && tracker.lost_after(0).records.is_empty());
    tracker.observe_version(version(2), 7, NOW);
    assert_eq!(tracker.position().own_seq, 0);
    tracker.observe_version(version(1), 8, NOW);
    assert_eq!(tracker.position().own_seq, 8);
    assert_eq!(tracker.lost_after(0).locks[0].fence, None);
    tracker.observe_fence(&lock_name("lock"), version(1), 33);
    assert_eq!(tracker.lost_after(0).locks[0].fence, Some(33));
}

/// Which of two records wins: the restored one with seq 5, or the stored one.
#[test]
fn more_advanced_record_wins_and_otherwise_the_later_one() {
    let record = |change: &RecordChange| match change {
        RecordChange::Put(record) => record.clone(),
        RecordChange::Delete(_) => panic!("a record was expected"),
    };
    let deletion = RecordChange::Delete(RecordKey::JobState(job_id("a")));
    for (what, restored, stored, deleted, expected) in [
        ("lost record", state("a"), None, 0, true),
        ("record deleted later", state("a"), None, 6, false),
        ("record created again", state("a"), None, 4, true),
        ("older record", state("a"), Some((4, state("a"))), 0, true),
        ("later record", state("a"), Some((6, state("a"))), 0, false),
        ("deletion of nothing", deletion.clone(), None, 0, false),
        ("deletion of an older record", deletion.clone(), Some((4, state("a"))), 0, true),
        ("deletion of a later record", deletion, Some((6, state("a"))), 0, false),
        ("larger cursor", cursor(Some(60)), Some((6, cursor(Some(0)))), 0, true),
        ("smaller cursor", cursor(Some(0)), Some((4, cursor(Some(60)))), 0, false),
        ("cursor without a position", cursor(None), Some((4, cursor(Some(0)))), 0, false),
        ("equal cursor", cursor(Some(0)), Some((4, cursor(Some(0)))), 0, true),
        ("finished run", run("r", State::Error), Some((6, run("r", State::Stopping))), 0, true),
        ("started run", run("r", State::Running), Some((4, run("r", State::Success))), 0, false),
        ("later end", run("r", State::Success), Some((4, run("r", State::Error))), 0, true),
    ] {
        let stored = stored.map(|(seq, change)| (seq, record(&change)));
        let stored = stored.as_ref().map(|(seq, record)| (*seq, record));
        assert_eq!(wins_merge(5, &restored, stored, deleted), expected, "{what}");
    }
}

//! Recovery on a server that answers as planned: what is restored, in which calls, and what is verified.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_core::decision::{LockTake, RecordChange};
use cronhold_core::record::{JobState, Run};
use cronhold_core::{JobId, JobUid, RunNumber, State};
use cronhold_schedule::Instant as Moment;

use super::*;

/// How many records and locks a call has restored, and the last commit of the process in it.
type RestoreCall = (usize, usize, Option<u64>);

#[derive(Debug, Default)]
struct PlannedServer {
    /// Whether there was no rollback after all.
    is_intact: bool,
    /// Whether the next call of `restore` finds that the store was rolled back once more.
    is_rolled_back_again: AtomicBool,
    /// Records that others have changed.
    changed: Vec<RecordKey>,
    /// Why requests are rejected.
    rejection: Mutex<Option<RequestRejection>>,
    restored: Mutex<Vec<RestoreCall>>,
    verified: Mutex<Vec<usize>>,
}

impl RecoveryServer for PlannedServer {
    const RESTORED_PER_CALL: usize = 2;
    const VERIFIED_PER_CALL: usize = 2;
    const SYSTEM: &'static str = "The store";

    fn server_name(&self) -> String {
        "h:1".to_owned()
    }

    async fn begin(&self, request: RecoveryRequest) -> Result<Option<RecoveryStart>, Fault> {
        assert_eq!((request.position.epoch.as_str(), request.writer), ("old", 7));
        let start = RecoveryStart { epoch: "new".to_owned(), seq: 9, own_seq: 0 };
        Ok((!self.is_intact).then_some(start))
    }

    async fn restore(&self, start: &RecoveryStart, part: RestoredPart<'_>) -> Result<bool, Fault> {
        assert_eq!(start.epoch, "new");
        lock_mutex(&self.restored).push((part.records.len(), part.locks.len(), part.own_seq));
        Ok(!self.is_rolled_back_again.swap(false, Ordering::Relaxed))
    }

    async fn find_changed(
        &self,
        _position: StorePosition,
        records: &[(RecordKey, RecordVersion)],
    ) -> Result<Result<Vec<usize>, RequestRejection>, Fault> {
        if let Some(rejection) = lock_mutex(&self.rejection).take() {
            return Ok(Err(rejection));
        }
        lock_mutex(&self.verified).push(records.len());
        Ok(Ok((0..records.len()).filter(|index| self.changed.contains(&records[*index].0)).collect()))
    }

    fn on_rollback(&self, _start: &RecoveryStart, _records: usize) {}

    fn on_restored(&self, _records: usize) {}
}

fn job_id(name: &str) -> JobId {
    JobId::parse(name).expect("an id")
}

fn state(name: &str) -> Record {
    Record::JobState(Arc::new(JobState::new(job_id(name))))
}

/// A process that has written three job states, and a run with its lock.
fn recovery(server: PlannedServer) -> RollbackRecovery<PlannedServer> {
    let recovery = RollbackRecovery::new(server, None);
    recovery.start_epoch("old".to_owned(), 0);
    recovery.record_writer(7);
    let id = RunId::from_key(Moment::EPOCH, "r");
    let blank = Run::blank(id, RunNumber(1), job_id("r"), JobUid::from_bits(7), Moment::EPOCH);
    let run = Record::Run(Arc::new(Run { state: State::Running, ..blank }));
    let lock = LockTake { lock: LockName::parse("l").expect("a name"), holder: id, ttl: Some(Span::from_secs(90)) };
    for (seq, record) in (1..).zip([state("a"), state("b"), state("c"), run]) {
        let take = if seq == 4 { vec![lock.clone()] } else { Vec::new() };
        let version = RecordVersion::new(7, seq);
        let writes = UnitWrites { version, changes: vec![RecordChange::Put(record)], take, free: Vec::new() };
        recovery.record_commit(seq, writes, &[]);
    }
    recovery
}

fn restored(recovery: &RollbackRecovery<PlannedServer>) -> Vec<RestoreCall> {
    lock_mutex(&recovery.server().restored).clone()
}

#[tokio::test]
async fn lost_writes_are_restored_in_parts_and_locks_last() {
    let recovery = recovery(PlannedServer::default());
    assert_eq!(recovery.warning(), None);
    let fault = recovery.handle_rejection(RequestRejection::RolledBack).await;
    assert!(
        matches!(&fault, Fault::Recovering(why) if why.contains("h:1") && why.contains(&Span::from_secs(90).to_string())),
        "{fault}"
    );
    assert_eq!(restored(&recovery), [(2, 0, None), (2, 1, Some(4))]);
    assert_eq!(recovery.position().epoch, "new");
    let warning = recovery.warning().expect("there was a rollback");
    assert!(warning.starts_with("The store was rolled back to an earlier state 1 times"), "{warning}");
    assert!(warning.contains("4 records"), "{warning}");
}

#[tokio::test]
async fn nothing_is_restored_without_a_rollback() {
    let recovery = recovery(PlannedServer { is_intact: true, ..PlannedServer::default() });
    let fault = recovery.handle_rejection(RequestRejection::RolledBack).await;
    assert!(matches!(fault, Fault::Recovering(_)), "{fault}");
    let fault = recovery.handle_rejection(RequestRejection::Restarted(Span::from_secs(6))).await;
    assert!(matches!(&fault, Fault::Restarted(why) if why.contains("6s")), "{fault}");
    assert_eq!((restored(&recovery), recovery.warning()), (Vec::new(), None));
}

#[tokio::test]
async fn restoration_that_was_interrupted_is_repeated() {
    let recovery = recovery(PlannedServer { is_rolled_back_again: AtomicBool::new(true), ..PlannedServer::default() });
    let fault = recovery.handle_rejection(RequestRejection::RolledBack).await;
    assert!(matches!(&fault, Fault::Recovering(why) if why.contains("cannot restore")), "{fault}");
    assert_eq!((recovery.position().epoch.as_str(), recovery.warning()), ("old", None));
    recovery.handle_rejection(RequestRejection::RolledBack).await;
    assert_eq!(restored(&recovery), [(2, 0, None), (2, 0, None), (2, 1, Some(4))]);
}

#[tokio::test]
async fn records_that_others_have_changed_are_not_restored() {
    let changed = vec![state("a").key(), state("c").key()];
    let recovery = recovery(PlannedServer { changed, ..PlannedServer::default() });
    *lock_mutex(&recovery.server().rejection) = Some(RequestRejection::Recovering(Span::from_secs(1)));
    recovery.verify_all().await;
    assert_eq!(*lock_mutex(&recovery.server().verified), [0; 0], "the request was rejected");
    recovery.verify_some().await;
    assert_eq!(*lock_mutex(&recovery.server().verified), [2, 2], "everything, because the first pass failed");
    recovery.handle_rejection(RequestRejection::RolledBack).await;
    assert_eq!(restored(&recovery), [(2, 1, Some(4))]);
}

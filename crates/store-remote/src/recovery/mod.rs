//! Recovery from a rollback of the store: a failover lost the last commits, or a server started with old data or with
//! none. Every process keeps a journal of its own writes (`store/rollback`). When the store has lost some of them, it
//! rejects commits until the live processes have restored theirs and all locks that are not renewed have expired.
//!
//! Only the process that made a commit can tell that it is lost. So after every restart and failover, commits are
//! rejected until every live node has sent a heartbeat.
//!
//! The store compares positions, rejects requests and merges restored records; [`RecoveryServer`] is how it is asked to.

mod seq_file;
#[cfg(test)]
mod tests;
mod verifier;

use std::fmt;
use std::sync::Mutex;

use cronhold_core::RunId;
use cronhold_core::record::{LockName, Record, RecordKey, RecordVersion};
use cronhold_schedule::Span;
use cronhold_store::rollback::{JournaledLock, JournaledRecord, RollbackTracker, StorePosition, UnitWrites};
use cronhold_store::{Fault, lock_mutex};
use tokio::time::Instant;

pub use seq_file::SeqFile;

use crate::url::as_span;
use verifier::JournalVerifier;

/// What a recovery requests of the store.
pub trait RecoveryServer: fmt::Debug + Send + Sync + 'static {
    /// Records of one call of [`Self::restore`].
    const RESTORED_PER_CALL: usize;

    /// Records of one call of [`Self::find_changed`].
    const VERIFIED_PER_CALL: usize;

    /// The name of the server's software, for messages.
    const SYSTEM: &'static str;

    /// The server, for messages.
    fn server_name(&self) -> String;

    /// Starts a new epoch, so that all processes stop committing. `None` if there was no rollback after all.
    fn begin(&self, request: RecoveryRequest) -> impl Future<Output = Result<Option<RecoveryStart>, Fault>> + Send;

    /// Restores records and locks, each unless the stored one wins ([`cronhold_store::rollback::wins_merge`]). Returns
    /// false if the store was rolled back once more.
    fn restore(
        &self,
        start: &RecoveryStart,
        part: RestoredPart<'_>,
    ) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// The indexes of records that have another version now. A store that was rolled back rejects the request.
    fn find_changed(
        &self,
        position: StorePosition,
        records: &[(RecordKey, RecordVersion)],
    ) -> impl Future<Output = Result<Result<Vec<usize>, RequestRejection>, Fault>> + Send;

    /// Called when a recovery begins that restores this many records.
    fn on_rollback(&self, start: &RecoveryStart, records: usize);

    /// Called when this many records are restored.
    fn on_restored(&self, records: usize);
}

/// Why the store rejects a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestRejection {
    /// The store misses commits that this process has seen.
    RolledBack,
    /// Nodes restore what the store has lost; commits are rejected for this time from now on.
    Recovering(Span),
    /// The store was restarted, or another server has taken over; commits are rejected for this time from now on.
    Restarted(Span),
}

/// What the store needs to know to start a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryRequest {
    /// The position that this process has seen.
    pub position: StorePosition,
    /// How long commits are rejected.
    pub hold: Span,
    /// The highest writer number of this process. The store must not assign a lower one.
    pub writer: u32,
}

/// The state of the store when a recovery begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryStart {
    /// The new epoch.
    pub epoch: String,
    pub seq: u64,
    /// The last commit of this process that the store still has.
    pub own_seq: u64,
}

/// What one call restores.
#[derive(Debug, Clone, Copy)]
pub struct RestoredPart<'a> {
    pub records: &'a [JournaledRecord],
    /// Empty but in the last call: by then it is known which of their runs have ended.
    pub locks: &'a [JournaledLock],
    /// In the last call, the last commit of this process, which the store keeps.
    pub own_seq: Option<u64>,
}

/// Detects rollbacks, and restores what this process has written.
#[derive(Debug)]
pub struct RollbackRecovery<S> {
    server: S,
    tracker: RollbackTracker,
    /// When this process began.
    begin: Instant,
    seq_file: Option<SeqFile>,
    verifier: JournalVerifier,
    /// Held while this process restores records.
    restoring: tokio::sync::Mutex<()>,
    totals: Mutex<RecoveryTotals>,
}

/// Totals since the process started, for the warning in health reports.
#[derive(Debug, Default)]
struct RecoveryTotals {
    rollbacks: u64,
    records: u64,
}

impl<S: RecoveryServer> RollbackRecovery<S> {
    /// The seq file has the position that an earlier process reached.
    pub fn new(server: S, seq_file: Option<SeqFile>) -> Self {
        let saved = seq_file.as_ref().and_then(SeqFile::read);
        Self {
            server,
            tracker: RollbackTracker::new(saved),
            begin: Instant::now(),
            seq_file,
            verifier: JournalVerifier::default(),
            restoring: tokio::sync::Mutex::default(),
            totals: Mutex::default(),
        }
    }

    pub fn server(&self) -> &S {
        &self.server
    }

    /// The position of the store as this process knows it.
    pub fn position(&self) -> StorePosition {
        self.tracker.position()
    }

    /// A writer has enrolled in this epoch.
    pub fn start_epoch(&self, epoch: String, seq: u64) {
        self.tracker.start_epoch(epoch, seq);
        self.save_position();
    }

    /// This process was assigned a writer number.
    pub fn record_writer(&self, writer: u32) {
        self.tracker.record_writer(writer);
    }

    /// The store has reached this seq.
    pub fn observe_seq(&self, seq: u64) {
        self.tracker.observe_seq(seq);
    }

    /// A record was read or written. Its lease may prolong a recovery.
    pub fn observe_record(&self, record: &Record) {
        self.tracker.observe_record(record);
    }

    /// A unit of this process was committed with this seq, and took locks with these fences.
    pub fn record_commit(&self, seq: u64, writes: UnitWrites, fences: &[(LockName, u64)]) {
        self.tracker.record_commit(seq, writes, fences, self.uptime());
    }

    /// The reply to a unit of this process was lost: it may have been committed.
    pub fn record_unconfirmed(&self, writes: UnitWrites) {
        self.tracker.record_unconfirmed(writes);
    }

    /// Whether [`Self::observe_version`] can confirm anything.
    pub fn has_unconfirmed(&self) -> bool {
        self.tracker.has_unconfirmed()
    }

    /// A record was read that has this version, and that the commit `seq` wrote. If the reply to that unit was lost, this
    /// confirms it.
    pub fn observe_version(&self, version: RecordVersion, seq: u64) {
        self.tracker.observe_version(version, seq, self.uptime());
    }

    /// A lock was read that the unit with this version has taken.
    pub fn observe_fence(&self, lock: &LockName, version: RecordVersion, fence: u64) {
        self.tracker.observe_fence(lock, version, fence);
    }

    /// The time to live of a lock that a run of this node holds. If an earlier process of the node has taken the lock, it
    /// is unknown, and the longest that can be needed is used.
    pub fn lock_ttl(&self, lock: &LockName, holder: RunId) -> Span {
        self.tracker.lock_ttl(lock, holder).unwrap_or_else(|| self.tracker.hold().span())
    }

    /// Saves the position to the seq file, if there is one.
    pub fn save_position(&self) {
        if let Some(seq_file) = &self.seq_file {
            let StorePosition { epoch, seq, .. } = self.tracker.position();
            seq_file.save(&epoch, seq, Instant::now());
        }
    }

    /// Another process has written a record with the commit `seq`, and is responsible for restoring it.
    pub fn forget(&self, key: &RecordKey, seq: u64) {
        self.tracker.forget(key, seq);
    }

    /// Sets the minimum time for which commits are rejected after a rollback.
    #[cfg(feature = "testing")]
    pub fn set_min_hold(&self, min: Span) {
        self.tracker.hold().set_min(min);
    }

    /// What recoveries have restored; `None` if there was no rollback.
    pub fn warning(&self) -> Option<String> {
        let totals = lock_mutex(&self.totals);
        (totals.rollbacks > 0).then(|| {
            let (system, RecoveryTotals { rollbacks, records }) = (S::SYSTEM, &*totals);
            format!(
                "{system} was rolled back to an earlier state {rollbacks} times since this process started; {records} \
                 records were restored, and outputs were not"
            )
        })
    }

    /// Verifies the whole journal, after notifications were lost.
    pub async fn verify_all(&self) {
        self.verifier.verify_all(self).await;
    }

    /// Verifies a part of the journal.
    pub async fn verify_some(&self) {
        self.verifier.verify_some(self).await;
    }

    /// The fault for a rejected request. After a rollback, this process restores its writes first.
    pub async fn handle_rejection(&self, rejection: RequestRejection) -> Fault {
        match rejection {
            RequestRejection::RolledBack => self.recover().await,
            RequestRejection::Recovering(rest) => self.recovering(rest),
            RequestRejection::Restarted(rest) => Fault::Restarted(format!(
                "{}: commits are rejected for {rest}, so that each node can report what was lost",
                self.server.server_name()
            )),
        }
    }

    async fn recover(&self) -> Fault {
        let hold = self.tracker.hold().span();
        let Ok(_guard) = self.restoring.try_lock() else { return self.recovering(hold) };
        match self.restore().await {
            Ok(()) => self.recovering(hold),
            // A part may be restored. Restoring it again does no harm.
            Err(fault) => {
                let server = self.server.server_name();
                Fault::Recovering(format!("{server}: cannot restore lost records yet ({fault})"))
            }
        }
    }

    fn recovering(&self, rest: Span) -> Fault {
        Fault::Recovering(format!(
            "{}: nodes restore what it has lost, and commits are rejected for at most {rest}; the time restarts when \
             another node finds records missing",
            self.server.server_name()
        ))
    }

    async fn restore(&self) -> Result<(), Fault> {
        let (position, hold, writer) = (self.position(), self.tracker.hold().span(), self.tracker.writer());
        let Some(start) = self.server.begin(RecoveryRequest { position, hold, writer }).await? else { return Ok(()) };
        let lost = self.tracker.lost_after(start.own_seq);
        let count = lost.records.len();
        self.server.on_rollback(&start, count);
        let mut records = lost.records.chunks(S::RESTORED_PER_CALL);
        // At least one call, because it also stores the last commit of this process.
        loop {
            let part = records.next().unwrap_or_default();
            let is_last = records.len() == 0;
            let locks: &[JournaledLock] = if is_last { &lost.locks } else { &[] };
            let own_seq = is_last.then(|| self.position().own_seq);
            if !self.server.restore(&start, RestoredPart { records: part, locks, own_seq }).await? {
                return Err(Fault::Unavailable("the store was rolled back once more".to_owned()));
            }
            if is_last {
                break;
            }
        }
        self.tracker.complete_recovery(start.epoch, start.seq);
        self.save_position();
        let mut totals = lock_mutex(&self.totals);
        totals.rollbacks += 1;
        totals.records += count as u64;
        self.server.on_restored(count);
        Ok(())
    }

    fn uptime(&self) -> Span {
        as_span(self.begin.elapsed())
    }
}

//! Tracks the position of the store and the writes of this process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use cronhold_core::RunId;
use cronhold_core::record::{LockName, Record, RecordKey, RecordVersion};
use cronhold_schedule::Span;

use super::unconfirmed::UnconfirmedUnits;
use super::{CommitHold, LostWrites, UnitWrites, WriteJournal};
use crate::lock_mutex;

/// How far the store was when this process last saw it. The store compares it with its own before it writes anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StorePosition {
    /// Empty before the first contact.
    pub epoch: String,
    pub seq: u64,
    /// The last commit of this process; 0 if there is none. A store that was rolled back and has reached the same seq
    /// again by commits of others does not have it.
    pub own_seq: u64,
}

/// What a process remembers of a store that can be rolled back.
#[derive(Debug, Default)]
pub struct RollbackTracker {
    state: Mutex<TrackerState>,
    hold: CommitHold,
    /// Whether there are units without a reply, so that reads need not look them up.
    has_unconfirmed: AtomicBool,
}

#[derive(Debug, Default)]
struct TrackerState {
    position: StorePosition,
    /// The highest writer number of this process.
    writer: u32,
    journal: WriteJournal,
    unconfirmed: UnconfirmedUnits,
}

impl RollbackTracker {
    /// `saved` is the epoch and the seq that an earlier process saw.
    pub fn new(saved: Option<(String, u64)>) -> Self {
        let tracker = Self::default();
        if let Some((epoch, seq)) = saved {
            tracker.start_epoch(epoch, seq);
        }
        tracker
    }

    pub fn position(&self) -> StorePosition {
        self.lock().position.clone()
    }

    /// Moves to another epoch, in which a writer has enrolled.
    pub fn start_epoch(&self, epoch: String, seq: u64) {
        let position = &mut self.lock().position;
        (position.epoch, position.seq) = (epoch, seq);
    }

    /// This process was assigned a writer number.
    pub fn record_writer(&self, writer: u32) {
        let mut state = self.lock();
        state.writer = state.writer.max(writer);
    }

    /// The highest writer number of this process; 0 before it has enrolled.
    pub fn writer(&self) -> u32 {
        self.lock().writer
    }

    /// The store has reached this seq.
    pub fn observe_seq(&self, seq: u64) {
        let position = &mut self.lock().position;
        position.seq = position.seq.max(seq);
    }

    /// A record was read or written. Its lease may prolong a recovery.
    pub fn observe_record(&self, record: &Record) {
        self.hold.observe_record(record);
    }

    /// A unit of this process was committed with this seq, and took locks with these fences.
    pub fn record_commit(&self, seq: u64, writes: UnitWrites, fences: &[(LockName, u64)], now: Span) {
        let mut state = self.lock();
        state.position.own_seq = state.position.own_seq.max(seq);
        // The unit may have been submitted again after its first reply was lost.
        state.unconfirmed.remove(writes.version);
        // Reserved locks protect no program, so a recovery does not wait for them.
        for ttl in writes.take.iter().filter(|take| !take.lock.is_reserved()).filter_map(|take| take.ttl) {
            self.hold.observe_lease(ttl);
        }
        state.journal.record(seq, writes, fences, now);
    }

    /// The reply to a unit of this process was lost: it may have been committed.
    pub fn record_unconfirmed(&self, writes: UnitWrites) {
        self.lock().unconfirmed.insert(writes);
        self.has_unconfirmed.store(true, Ordering::Release);
    }

    /// Whether [`Self::observe_version`] can confirm anything.
    pub fn has_unconfirmed(&self) -> bool {
        self.has_unconfirmed.load(Ordering::Acquire)
    }

    /// A record was read that the unit with this version has written, with the commit `seq`. If the reply to that unit was
    /// lost, this confirms it. The fences of its locks follow when the locks are read.
    pub fn observe_version(&self, version: RecordVersion, seq: u64, now: Span) {
        let unit = self.lock().unconfirmed.remove(version);
        if let Some(writes) = unit {
            self.record_commit(seq, writes, &[], now);
        }
    }

    /// A lock was read that the unit with this version has taken.
    pub fn observe_fence(&self, lock: &LockName, version: RecordVersion, fence: u64) {
        self.lock().journal.set_fence(lock, version, fence);
    }

    /// The time to live of a lock that this process has taken for a run; `None` if it has not, or if the lock does not
    /// expire.
    pub fn lock_ttl(&self, lock: &LockName, holder: RunId) -> Option<Span> {
        self.lock().journal.lock_ttl(lock, holder)
    }

    /// Another process has written a record with the commit `seq`, and is responsible for restoring it.
    pub fn forget(&self, key: &RecordKey, seq: u64) {
        self.lock().journal.forget(key, seq);
    }

    /// Records of the journal after this one, see [`WriteJournal::versions_after`].
    pub fn versions_after(&self, after: Option<&RecordKey>, limit: usize) -> Vec<(RecordKey, RecordVersion)> {
        self.lock().journal.versions_after(after, limit)
    }

    /// Another process has replaced this version of a record.
    pub fn forget_version(&self, key: &RecordKey, version: RecordVersion) {
        self.lock().journal.forget_version(key, version);
    }

    /// How long commits are rejected after a rollback.
    pub fn hold(&self) -> &CommitHold {
        &self.hold
    }

    /// What has to be restored if the store has the commit `seq` of this process and none after it.
    pub fn lost_after(&self, seq: u64) -> LostWrites {
        self.lock().journal.lost_after(seq)
    }

    /// All lost writes are restored, in a store with this position.
    pub fn complete_recovery(&self, epoch: String, seq: u64) {
        self.lock().journal.start_generation();
        self.start_epoch(epoch, seq);
    }

    fn lock(&self) -> MutexGuard<'_, TrackerState> {
        lock_mutex(&self.state)
    }
}

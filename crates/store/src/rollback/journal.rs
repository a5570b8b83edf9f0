//! The journal of what this process has written: lasting records for as long as they matter, others for a while.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use cronhold_core::RunId;
use cronhold_core::decision::{LockRelease, LockTake, RecordChange};
use cronhold_core::record::{LockName, Record, RecordKey, RecordVersion};
use cronhold_schedule::Span;

use crate::Unit;

/// How long finished runs and deletions are kept. By default, Redis writes a file at least once an hour if anything has
/// changed, so that a restart loses less than that.
const PASSING_AGE_MAX: Span = Span::from_secs(3_900);

/// Finished runs and deletions that are kept at most.
const PASSING_MAX: usize = 20_000;

/// Locks of finished runs are dropped when there are more locks than this, and more than records.
const LOCKS_CLEANUP: usize = 1_000;

/// A reserved lock with a longer time to live is a marker: it is never renewed, and its existence has a meaning. Other
/// reserved locks are not restored.
const MARKER_TTL: Span = Span::from_secs(3_600);

/// What a unit writes.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitWrites {
    pub version: RecordVersion,
    pub changes: Vec<RecordChange>,
    pub take: Vec<LockTake>,
    pub free: Vec<LockRelease>,
}

/// A record that was written or deleted, with the commit that did it.
#[derive(Debug, Clone, PartialEq)]
pub struct JournaledRecord {
    /// How many recoveries this process had completed before.
    generation: u64,
    pub seq: u64,
    pub version: RecordVersion,
    pub change: RecordChange,
}

/// A lock that was taken, with the commit that did it.
#[derive(Debug, Clone, PartialEq)]
pub struct JournaledLock {
    pub seq: u64,
    pub version: RecordVersion,
    pub take: LockTake,
    /// `None` if the reply to the unit was lost and the lock was not read since.
    pub fence: Option<u64>,
}

/// What a process restores after a rollback.
#[derive(Debug, PartialEq)]
pub struct LostWrites {
    /// Records that were written by lost commits.
    pub records: Vec<JournaledRecord>,
    /// Locks of unfinished runs, and markers. Their commits may not be lost: a store that was rolled back misses their
    /// renewals.
    pub locks: Vec<JournaledLock>,
}

/// What this process has written. Times are uptimes of the process.
#[derive(Debug, Default)]
pub struct WriteJournal {
    records: BTreeMap<RecordKey, JournaledRecord>,
    locks: BTreeMap<LockName, JournaledLock>,
    /// Marker locks, the oldest first. They are dropped after a while, because a rollback loses only recent writes.
    markers: VecDeque<(Span, JournaledLock)>,
    /// Records that are dropped after a while, the oldest first, with the commit that wrote them.
    passing: VecDeque<(Span, RecordKey, u64)>,
    /// How many recoveries this process has completed.
    generation: u64,
}

impl UnitWrites {
    /// Whether the unit writes nothing that can be lost.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.take.is_empty() && self.free.is_empty()
    }
}

impl From<&Unit> for UnitWrites {
    fn from(unit: &Unit) -> Self {
        let Unit { version, changes, take, free, .. } = unit;
        Self { version: *version, changes: changes.clone(), take: take.clone(), free: free.clone() }
    }
}

impl JournaledRecord {
    /// Whether it must be restored however long ago it was written.
    fn is_lasting(&self) -> bool {
        match &self.change {
            RecordChange::Put(Record::Run(run)) => !run.state.is_finished(),
            RecordChange::Put(Record::Action(action)) => action.is_pending(),
            RecordChange::Put(Record::Triggers(set)) => !set.pending.is_empty(),
            RecordChange::Put(Record::Identity(_) | Record::SkipSpan(_)) | RecordChange::Delete(_) => false,
            RecordChange::Put(_) => true,
        }
    }
}

impl WriteJournal {
    /// Records the writes of a committed unit. `fences` are those of the locks that it took, in their order; empty if they
    /// are unknown.
    pub fn record(&mut self, seq: u64, writes: UnitWrites, fences: &[(LockName, u64)], now: Span) {
        let UnitWrites { version, changes, take, free } = writes;
        for change in changes {
            let key = change.key();
            // Replies to concurrent commits may arrive in any order. Seqs from before a recovery are not comparable
            // with those from after it.
            if self.records.get(&key).is_some_and(|known| known.generation == self.generation && known.seq > seq) {
                continue;
            }
            let entry = JournaledRecord { generation: self.generation, seq, version, change };
            if !entry.is_lasting() {
                self.passing.push_back((now, key.clone(), seq));
            }
            self.records.insert(key, entry);
        }
        for LockRelease { lock, holder } in free {
            if self.locks.get(&lock).is_some_and(|held| held.take.holder == holder) {
                self.locks.remove(&lock);
            }
            self.markers.retain(|(_, marker)| marker.take.lock != lock || marker.take.holder != holder);
        }
        for take in take {
            let fence = fences.iter().find(|(lock, _)| *lock == take.lock).map(|(_, fence)| *fence);
            let entry = JournaledLock { seq, version, take, fence };
            if is_marker(&entry.take) {
                self.markers.push_back((now, entry));
            } else if self.is_open(entry.take.holder) {
                self.locks.insert(entry.take.lock.clone(), entry);
            }
        }
        self.drop_old(now);
    }

    /// Sets the fence of a lock that the unit with this version has taken, if it is not known yet.
    pub fn set_fence(&mut self, lock: &LockName, version: RecordVersion, fence: u64) {
        if let Some(entry) = self.locks.get_mut(lock).filter(|entry| entry.version == version) {
            entry.fence.get_or_insert(fence);
        }
    }

    /// The time to live of a lock that was taken for a run.
    pub fn lock_ttl(&self, lock: &LockName, holder: RunId) -> Option<Span> {
        self.locks.get(lock).filter(|entry| entry.take.holder == holder)?.take.ttl
    }

    /// Drops a record that another process has written with the commit `seq`, unless this process has written it since:
    /// notifications may be late.
    pub fn forget(&mut self, key: &RecordKey, seq: u64) {
        if self.records.get(key).is_some_and(|entry| entry.seq <= seq) {
            self.records.remove(key);
        }
    }

    /// Drops a record that another process has written, unless this process has written it again meanwhile.
    pub fn forget_version(&mut self, key: &RecordKey, version: RecordVersion) {
        if self.records.get(key).is_some_and(|entry| entry.version == version) {
            self.records.remove(key);
        }
    }

    /// Up to `limit` lasting records after this one, with their versions. Others need no verification: they are final, or
    /// the later of two versions wins when they are restored.
    pub fn versions_after(&self, after: Option<&RecordKey>, limit: usize) -> Vec<(RecordKey, RecordVersion)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let records = self.records.range((from, Bound::Unbounded)).filter(|(_, entry)| entry.is_lasting());
        records.take(limit).map(|(key, entry)| (key.clone(), entry.version)).collect()
    }

    /// A recovery is complete: further commits are later than all entries, whatever their seq.
    pub fn start_generation(&mut self) {
        self.generation += 1;
    }

    /// What has to be restored if the store has this commit and none after it.
    pub fn lost_after(&self, seq: u64) -> LostWrites {
        let records = self.records.values().filter(|entry| entry.seq > seq).cloned().collect();
        let locks = self.locks.values().filter(|entry| self.is_open(entry.take.holder));
        let locks = locks.chain(self.markers.iter().map(|(_, marker)| marker).filter(|marker| marker.seq > seq));
        LostWrites { records, locks: locks.cloned().collect() }
    }

    /// Whether the journal has this run and it has not ended.
    fn is_open(&self, run: RunId) -> bool {
        self.records.get(&RecordKey::Run(run)).is_some_and(JournaledRecord::is_lasting)
    }

    fn drop_old(&mut self, now: Span) {
        let is_old = |at: Span| now.minus(at) > PASSING_AGE_MAX;
        while let Some((at, _, _)) = self.passing.front()
            && (self.passing.len() > PASSING_MAX || is_old(*at))
        {
            let Some((_, key, seq)) = self.passing.pop_front() else { break };
            // The record may have been written again since.
            if self.records.get(&key).is_some_and(|entry| entry.seq == seq && !entry.is_lasting()) {
                self.records.remove(&key);
            }
        }
        while let Some((at, _)) = self.markers.front()
            && (self.markers.len() > PASSING_MAX || is_old(*at))
        {
            self.markers.pop_front();
        }
        if self.locks.len() > LOCKS_CLEANUP && self.locks.len() > self.records.len() {
            let records = &self.records;
            let is_open = |run| records.get(&RecordKey::Run(run)).is_some_and(JournaledRecord::is_lasting);
            self.locks.retain(|_, lock| is_open(lock.take.holder));
        }
    }
}

fn is_marker(take: &LockTake) -> bool {
    take.lock.is_reserved() && take.ttl.is_some_and(|ttl| ttl > MARKER_TTL)
}

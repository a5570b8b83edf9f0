//! The journal of what this process has written: lasting records for as long as they matter, others for a while.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use cronhold_core::record::LockName;
use tokio::time::Instant;

/// How long finished runs and deletions are kept. By default, Redis writes a file at least once an hour if anything has
/// changed, so that a restart loses less than that.
const PASSING_AGE_MAX: Duration = Duration::from_secs(3_900);

/// Finished runs and deletions that are kept at most.
const PASSING_MAX: usize = 20_000;

/// Locks of finished runs are dropped when there are more locks than this, and more than records.
const LOCKS_CLEANUP: usize = 1_000;

/// A reserved lock with a longer TTL, in milliseconds, is a marker: it is never renewed, and its existence has a
/// meaning. Reserved locks with a shorter TTL are not restored.
const MARKER_TTL_MILLIS: u64 = 3_600_000;

/// The digit of runs among the kinds.
const RUN: u8 = 6;

/// A record that was written or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordWrite {
    /// The digit of its kind.
    pub(crate) kind: u8,
    pub(crate) field: String,
    /// The stored text without version and seq; empty if the record was deleted.
    pub(crate) body: Vec<u8>,
    /// What the script needs to write the keys for Cronken's clients.
    pub(crate) projection: Vec<u8>,
    /// Whether it must be restored however long ago it was written.
    pub(crate) is_lasting: bool,
}

/// A lock that was taken or released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockWrite {
    pub(crate) lock: String,
    pub(crate) holder: String,
    /// 0 if the lock was released, or if the reply to the unit that took it was lost and the lock was not read since.
    pub(crate) fence: u64,
    /// 0 if the lock does not expire.
    pub(crate) ttl_millis: u64,
    pub(crate) is_taken: bool,
}

/// A write with the commit and the version that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournaledWrite<T> {
    /// How many recoveries this process had completed before.
    generation: u64,
    pub(super) seq: u64,
    pub(super) version: String,
    pub(super) write: T,
}

/// The writes after some commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LostWrites {
    pub(super) records: Vec<JournaledWrite<RecordWrite>>,
    pub(super) locks: Vec<JournaledWrite<LockWrite>>,
}

/// The digit of a record's kind, and its field.
pub(super) type RecordId = (u8, String);

/// What this process has written.
#[derive(Debug, Default)]
pub(super) struct WriteJournal {
    records: BTreeMap<RecordId, JournaledWrite<RecordWrite>>,
    /// Locks, by their name.
    locks: BTreeMap<String, JournaledWrite<LockWrite>>,
    /// Marker locks, the oldest first. They are dropped after a while, because a failover loses only recent writes.
    markers: VecDeque<(Instant, JournaledWrite<LockWrite>)>,
    /// Records that are dropped after a while, the oldest first, with the commit that wrote them.
    passing: VecDeque<(Instant, RecordId, u64)>,
    /// How many recoveries this process has completed.
    generation: u64,
}

impl RecordWrite {
    /// The text as it is stored; empty if the record was deleted.
    pub(super) fn stored_text(&self, version: &str, seq: u64) -> Vec<u8> {
        if self.body.is_empty() {
            return Vec::new();
        }
        let mut text = format!("{version} {seq:016x} ").into_bytes();
        text.extend_from_slice(&self.body);
        text
    }
}

impl LockWrite {
    /// Whether it is a lock of Cronhold itself, which no run holds.
    pub(super) fn is_reserved(&self) -> bool {
        self.lock.starts_with(LockName::RESERVED)
    }

    fn is_marker(&self) -> bool {
        self.is_reserved() && self.ttl_millis > MARKER_TTL_MILLIS
    }

    /// The token of a restored lock. It ends with a fixed word where others have a random text.
    pub(super) fn restored_token(&self, version: &str) -> String {
        format!("{}:{}:{version}:{}:brought-back", self.holder, self.fence, self.ttl_millis)
    }
}

impl WriteJournal {
    /// Records the writes of a committed unit.
    pub(super) fn record(
        &mut self,
        seq: u64,
        version: &str,
        writes: Vec<RecordWrite>,
        locks: Vec<LockWrite>,
        now: Instant,
    ) {
        for write in writes {
            let id = (write.kind, write.field.clone());
            // Replies to concurrent commits may arrive in any order. Seqs from before a recovery are not comparable
            // with those from after it.
            if self.records.get(&id).is_some_and(|known| known.generation == self.generation && known.seq > seq) {
                continue;
            }
            if !write.is_lasting {
                self.passing.push_back((now, id.clone(), seq));
            }
            self.records.insert(id, self.entry(seq, version, write));
        }
        for write in locks {
            if !write.is_taken {
                if self.locks.get(&write.lock).is_some_and(|held| held.write.holder == write.holder) {
                    self.locks.remove(&write.lock);
                }
                self.markers
                    .retain(|(_, marker)| marker.write.lock != write.lock || marker.write.holder != write.holder);
                continue;
            }
            let entry = self.entry(seq, version, write);
            if entry.write.is_marker() {
                self.markers.push_back((now, entry));
            } else if self.is_open(&entry.write.holder) {
                self.locks.insert(entry.write.lock.clone(), entry);
            }
        }
        self.drop_old(now);
    }

    fn entry<T>(&self, seq: u64, version: &str, write: T) -> JournaledWrite<T> {
        JournaledWrite { generation: self.generation, seq, version: version.to_owned(), write }
    }

    /// Sets the fence of a lock that the unit with this version has taken, if it is not known yet.
    pub(super) fn set_fence(&mut self, lock: &str, version: &str, fence: u64) {
        let entry = self.locks.get_mut(lock).filter(|entry| entry.version == version && entry.write.fence == 0);
        if let Some(entry) = entry {
            entry.write.fence = fence;
        }
    }

    /// Drops a record that another process has written with the commit `seq`, unless this process has written it since:
    /// notifications may be late.
    pub(super) fn forget(&mut self, kind: u8, field: &str, seq: u64) {
        let id = (kind, field.to_owned());
        if self.records.get(&id).is_some_and(|entry| entry.seq <= seq) {
            self.records.remove(&id);
        }
    }

    /// Drops a record that another process has written, unless this process has written it again meanwhile.
    pub(super) fn forget_version(&mut self, id: &RecordId, version: &str) {
        if self.records.get(id).is_some_and(|entry| entry.version == version) {
            self.records.remove(id);
        }
    }

    /// Up to `limit` lasting records after this one, with their versions. Others need no verification: they are final, or
    /// the later of two versions wins when they are restored.
    pub(super) fn versions_after(&self, after: Option<&RecordId>, limit: usize) -> Vec<(RecordId, String)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let records = self.records.range((from, Bound::Unbounded)).filter(|(_, entry)| entry.write.is_lasting);
        records.take(limit).map(|(id, entry)| (id.clone(), entry.version.clone())).collect()
    }

    /// A recovery is complete: further commits are later than all entries, whatever their seq.
    pub(super) fn start_generation(&mut self) {
        self.generation += 1;
    }

    /// The writes of later commits than this one.
    pub(super) fn written_after(&self, seq: u64) -> LostWrites {
        let records = self.records.values().filter(|entry| entry.seq > seq).cloned().collect();
        let locks = self.locks.values().filter(|entry| self.is_open(&entry.write.holder));
        let locks = locks.chain(self.markers.iter().map(|(_, marker)| marker)).filter(|entry| entry.seq > seq);
        LostWrites { records, locks: locks.cloned().collect() }
    }

    /// Whether the journal has this run and it has not ended.
    fn is_open(&self, run: &str) -> bool {
        self.records.get(&(RUN, run.to_owned())).is_some_and(|entry| entry.write.is_lasting)
    }

    fn drop_old(&mut self, now: Instant) {
        while let Some((at, _, _)) = self.passing.front()
            && (self.passing.len() > PASSING_MAX || now.duration_since(*at) > PASSING_AGE_MAX)
        {
            let Some((_, id, seq)) = self.passing.pop_front() else { break };
            // The record may have been written again since.
            if self.records.get(&id).is_some_and(|entry| entry.seq == seq && !entry.write.is_lasting) {
                self.records.remove(&id);
            }
        }
        while let Some((at, _)) = self.markers.front()
            && (self.markers.len() > PASSING_MAX || now.duration_since(*at) > PASSING_AGE_MAX)
        {
            self.markers.pop_front();
        }
        if self.locks.len() > LOCKS_CLEANUP && self.locks.len() > self.records.len() {
            let records = &self.records;
            self.locks.retain(|_, lock| {
                records.get(&(RUN, lock.write.holder.clone())).is_some_and(|run| run.write.is_lasting)
            });
        }
    }
}

//! Locks with a time to live.

use std::collections::BTreeMap;
use std::ops::Bound;

use cronhold_core::RunId;
use cronhold_core::decision::LockTake;
use cronhold_core::record::{LockName, RecordVersion, StoredRecord};
use cronhold_schedule::Instant;

use crate::LockEntry;

/// All locks that were taken lately.
#[derive(Debug, Clone, Default)]
pub(super) struct LockTable(BTreeMap<LockName, LockEntry>);

impl LockTable {
    /// What is stored about a lock.
    pub(super) fn get(&self, name: &LockName) -> Option<LockEntry> {
        self.0.get(name).copied()
    }

    /// A held lock as a record.
    pub(super) fn load(&self, name: &LockName, now: Instant) -> Option<StoredRecord> {
        self.0.get(name)?.to_record(name, now)
    }

    /// At most `limit` held locks, ordered by name, after one.
    pub(super) fn held(&self, after: Option<&LockName>, limit: usize, now: Instant) -> Vec<StoredRecord> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let held = self.0.range::<LockName, _>((from, Bound::Unbounded));
        held.filter_map(|(name, entry)| entry.to_record(name, now)).take(limit).collect()
    }

    /// Replaces what is stored about a lock.
    pub(super) fn set(&mut self, name: LockName, entry: Option<LockEntry>) {
        match entry {
            Some(entry) => drop(self.0.insert(name, entry)),
            None => drop(self.0.remove(&name)),
        }
    }

    /// Takes a lock for its former holder again, with its former fence, unless it is held.
    pub(super) fn restore(&mut self, take: &LockTake, version: RecordVersion, fence: u64, now: Instant) {
        self.0.entry(take.lock.clone()).or_default().restore(take, version, fence, now);
    }

    /// Renews a lock for its time to live. Returns false if the run has lost it.
    pub(super) fn renew(&mut self, name: &LockName, holder: RunId, now: Instant) -> bool {
        self.0.get_mut(name).is_some_and(|entry| entry.renew(holder, now))
    }

    /// Deletes free locks that were last taken before a time, and marks that have expired.
    pub(super) fn expire(&mut self, before: Instant, now: Instant) {
        self.0.retain(|name, entry| !entry.is_expendable(name, before, now));
    }
}

//! What the accepted units of a batch change together, so that a store can check and write each record once.

use std::collections::BTreeMap;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{LockName, RecordKey, RecordVersion};

use crate::LockEntry;

/// The combined effect of several units. It is equivalent to the units one after the other, if every record has its
/// expected version and every lock its former entry.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NetEffect {
    /// All records that the units compare.
    pub records: BTreeMap<RecordKey, NetRecord>,
    /// All locks that the units take or release.
    pub locks: BTreeMap<LockName, NetLock>,
}

/// The effect of a batch on one record.
#[derive(Debug, Clone, PartialEq)]
pub struct NetRecord {
    /// The version that the first unit expects; `None` if the record must not exist.
    pub expected: Option<RecordVersion>,
    /// The last change; `None` if the units only compare the record.
    pub change: Option<NetChange>,
}

/// The last change of a record in a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct NetChange {
    /// The version of the unit, which a written record gets.
    pub version: RecordVersion,
    pub change: RecordChange,
    /// Whether any of the units deletes the record, also if a later one creates it again. What belongs to the record,
    /// such as the output of a run, is then deleted.
    pub is_deletion: bool,
}

/// The effect of a batch on one lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetLock {
    /// The entry that the first unit found; `None` if there was none.
    pub before: Option<LockEntry>,
    /// The entry after the last unit; `None` if there still is none. It may be unchanged.
    pub after: Option<LockEntry>,
}

impl NetEffect {
    /// Whether nothing has to be compared or written.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.locks.is_empty()
    }

    /// Whether the units change nothing, although they may compare records.
    pub fn is_unchanged(&self) -> bool {
        self.records.values().all(|record| record.change.is_none()) && self.locks.values().all(NetLock::is_unchanged)
    }

    pub(super) fn add_compare(&mut self, key: &RecordKey, expected: Option<RecordVersion>) {
        if !self.records.contains_key(key) {
            self.records.insert(key.clone(), NetRecord { expected, change: None });
        }
    }

    /// Adds a change of a record that was compared.
    pub(super) fn add_change(&mut self, key: &RecordKey, version: RecordVersion, change: &RecordChange) {
        let Some(record) = self.records.get_mut(key) else { return };
        let was_deleted = record.change.as_ref().is_some_and(|earlier| earlier.is_deletion);
        let is_deletion = was_deleted || matches!(change, RecordChange::Delete(_));
        record.change = Some(NetChange { version, change: change.clone(), is_deletion });
    }

    pub(super) fn add_lock(&mut self, name: &LockName, before: Option<LockEntry>, after: Option<LockEntry>) {
        match self.locks.get_mut(name) {
            Some(lock) => lock.after = after,
            None => drop(self.locks.insert(name.clone(), NetLock { before, after })),
        }
    }
}

impl NetLock {
    /// Whether the entry stays as it was.
    pub fn is_unchanged(&self) -> bool {
        self.before == self.after
    }
}

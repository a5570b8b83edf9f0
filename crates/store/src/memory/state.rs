//! The state of the store, and how a unit changes it: everything is checked before anything is written, so that a unit
//! is atomic.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::decision::{LockRelease, RecordChange};
use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey, RecordKind, RecordVersion, StoredRecord};
use cronhold_schedule::Instant;

use super::indexes::Indexes;
use super::locks::LockTable;
use super::outputs::MemoryOutputs;
use crate::{Fault, Hint, StoreHealthReport, Unit, UnitReceipt, UnitRefusal, WriterId};

/// Writer numbers are below this.
const WRITERS_MAX: u32 = RecordVersion::WRITERS;

/// The writer number of the store itself, for records that are not written by a unit.
const STORE_WRITER: u32 = 0;

/// Everything that is stored.
#[derive(Debug, Clone, Default)]
pub(super) struct MemoryState {
    /// A table for each kind. Those of locks and of foreign runs stay empty.
    tables: [BTreeMap<RecordKey, StoredRecord>; RecordKind::Triggers as usize + 1],
    pub(super) indexes: Indexes,
    pub(super) locks: LockTable,
    pub(super) outputs: MemoryOutputs,
    /// Changes since hints were last taken.
    hints: Vec<Hint>,
    writers: u32,
    beats: u64,
    commits: u64,
    units: u64,
}

impl MemoryState {
    /// Assigns a number to a new writer; the first is 1.
    pub(super) fn enroll(&mut self) -> Result<WriterId, Fault> {
        if self.writers + 1 >= WRITERS_MAX {
            return Err(Fault::Permanent(format!("all {WRITERS_MAX} writer numbers are in use")));
        }
        self.writers += 1;
        Ok(WriterId(self.writers))
    }

    /// Takes the changes, to publish them to other handles.
    pub(super) fn take_hints(&mut self) -> Vec<Hint> {
        std::mem::take(&mut self.hints)
    }

    /// All records of a kind.
    pub(super) fn table(&self, kind: RecordKind) -> &BTreeMap<RecordKey, StoredRecord> {
        &self.tables[kind as usize]
    }

    /// The record with this key; `None` if it does not exist, or is an expired lock.
    pub(super) fn load(&self, key: &RecordKey, now: Instant) -> Option<StoredRecord> {
        match key {
            RecordKey::Lock(name) => self.locks.load(name, now),
            _ => self.table(key.kind()).get(key).cloned(),
        }
    }

    /// Commits units in their order.
    pub(super) fn commit(&mut self, units: Vec<Unit>, now: Instant) -> Vec<Result<UnitReceipt, UnitRefusal>> {
        self.commits += 1;
        units.into_iter().map(|unit| self.check(&unit, now).map(|()| self.apply(unit, now))).collect()
    }

    /// Stores a node and renews its locks. Returns the locks that it has lost.
    pub(super) fn beat(
        &mut self,
        node: &NodeRecord,
        locks: &[(LockName, RunId)],
        now: Instant,
    ) -> Vec<(LockName, RunId)> {
        self.beats += 1;
        let key = RecordKey::Node(node.id);
        let known = match self.table(RecordKind::Node).get(&key).map(|stored| &stored.record) {
            Some(Record::Node(old)) => Some(old),
            _ => None,
        };
        // Commands set the drain flag, so a heartbeat keeps it.
        let draining = known.filter(|old| old.incarnation == node.incarnation).map(|old| old.draining);
        let node = NodeRecord { draining: draining.unwrap_or(node.draining), ..node.clone() };
        if !known.is_some_and(|old| is_same_but_later(old, &node)) {
            self.hints.push(Hint::new(key.clone()));
        }
        let version = RecordVersion::new(STORE_WRITER, self.beats);
        self.put(key, Some(StoredRecord { version, record: Record::Node(Arc::new(node)) }));
        let lost = locks.iter().filter(|(name, holder)| !self.locks.renew(name, *holder, now));
        lost.cloned().collect()
    }

    /// Reports a healthy store: memory does not fail.
    pub(super) fn health(&self) -> StoreHealthReport {
        StoreHealthReport {
            trouble: None,
            description: "memory".to_owned(),
            commits: self.commits,
            units: self.units,
            warnings: Vec::new(),
        }
    }

    /// Whether a unit can be committed.
    fn check(&self, unit: &Unit, now: Instant) -> Result<(), UnitRefusal> {
        debug_assert!(
            is_well_formed(unit),
            "invalid unit: it changes a record without comparing it, or a lock: {unit:?}"
        );
        for (key, expected) in &unit.compare {
            let version = self.table(key.kind()).get(key).map(|stored| stored.version);
            if version != *expected {
                return Err(UnitRefusal::Conflict(key.clone()));
            }
        }
        for take in &unit.take {
            let Some(holder) = self.locks.holder(&take.lock, now).filter(|holder| *holder != take.holder) else {
                continue;
            };
            if !unit.free.contains(&LockRelease { lock: take.lock.clone(), holder }) {
                return Err(UnitRefusal::Held { lock: take.lock.clone(), holder });
            }
        }
        Ok(())
    }

    /// Applies a unit that was checked.
    fn apply(&mut self, unit: Unit, now: Instant) -> UnitReceipt {
        self.units += 1;
        let Unit { version, changes, take, free, .. } = unit;
        for change in changes {
            let key = change.key();
            self.hints.push(Hint::of(&change));
            match change {
                RecordChange::Put(record) => self.put(key, Some(StoredRecord { version, record })),
                RecordChange::Delete(_) => self.put(key, None),
            }
        }
        for free in free {
            self.locks.free(&free);
            // Also if the lock had expired: the runs that wait for it were not notified of that.
            self.hints.push(Hint::new(RecordKey::Lock(free.lock)));
        }
        let mut fences = Vec::with_capacity(take.len());
        for take in take {
            let name = take.lock.clone();
            self.hints.push(Hint::new(RecordKey::Lock(name.clone())));
            fences.push((name, self.locks.take(take, version, now)));
        }
        UnitReceipt { fences }
    }

    /// Rolls everything back, except the numbers of heartbeats, which must not be assigned twice.
    pub(super) fn roll_back(&mut self, to: Self) {
        *self = Self { beats: self.beats, ..to };
    }

    /// Assigns only numbers above this one to new writers.
    pub(super) fn raise_writers(&mut self, writer: u32) {
        self.writers = self.writers.max(writer);
    }

    /// Writes a restored record with its version, or deletes it.
    pub(super) fn restore(&mut self, key: RecordKey, record: Option<StoredRecord>) {
        self.hints.push(Hint::new(key.clone()));
        self.put(key, record);
    }

    /// Replaces a record and updates the indexes. Deleting a run deletes its output.
    fn put(&mut self, key: RecordKey, new: Option<StoredRecord>) {
        let table = &mut self.tables[key.kind() as usize];
        let old = table.get(&key).map(|stored| &stored.record);
        self.indexes.replace(&key, old, new.as_ref().map(|stored| &stored.record));
        match (new, &key) {
            (Some(stored), _) => drop(table.insert(key, stored)),
            (None, RecordKey::Run(run)) => {
                self.outputs.remove(*run);
                table.remove(&key);
            }
            (None, _) => drop(table.remove(&key)),
        }
    }
}

/// Whether only the time of the heartbeat has changed, which is not published.
fn is_same_but_later(old: &NodeRecord, new: &NodeRecord) -> bool {
    let NodeRecord { beat, gone, skew, .. } = old;
    *old == NodeRecord { beat: *beat, gone: *gone, skew: *skew, ..new.clone() }
}

/// Whether a unit has the form that [`Unit`] requires.
fn is_well_formed(unit: &Unit) -> bool {
    let is_compared = |change: &RecordChange| {
        let key = change.key();
        !matches!(key.kind(), RecordKind::Lock | RecordKind::Foreign)
            && unit.compare.iter().filter(|(compared, _)| *compared == key).count() == 1
    };
    unit.changes.iter().all(is_compared) && unit.compare.iter().all(|(key, _)| key.kind() != RecordKind::Lock)
}

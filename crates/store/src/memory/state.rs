//! The state of the store, and how a commit changes it: its units are validated first, and what they change together is
//! written afterwards.

use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey, RecordKind, RecordVersion, StoredRecord};
use cronhold_schedule::Instant;

use super::locks::LockTable;
use super::outputs::MemoryOutputs;
use crate::key_names::key_field;
use crate::{
    BatchValidator, Fault, Hint, LockEntry, NetChange, NetEffect, RecordTables, StoreHealthReport, Unit, UnitReceipt,
    UnitRefusal, VersionSource, WalkPage, WalkPlace, WriterId,
};

/// Writer numbers are below this.
const WRITERS_MAX: u32 = RecordVersion::WRITERS;

/// The writer number of the store itself, for records that are not written by a unit.
const STORE_WRITER: u32 = 0;

/// Everything that is stored.
#[derive(Debug, Clone, Default)]
pub(super) struct MemoryState {
    pub(super) records: RecordTables,
    pub(super) locks: LockTable,
    pub(super) outputs: MemoryOutputs,
    /// Why the store is sealed, if it is.
    pub(super) sealed: Option<String>,
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

    /// The record with this key; `None` if it does not exist, or is an expired lock.
    pub(super) fn load(&self, key: &RecordKey, now: Instant) -> Option<StoredRecord> {
        match key {
            RecordKey::Lock(name) => self.locks.load(name, now),
            _ => self.records.get(key).cloned(),
        }
    }

    /// Commits the units that pass a check, in their order.
    pub(super) fn commit(
        &mut self,
        units: &[Unit],
        check: impl Fn(&Unit) -> Result<(), Fault>,
        now: Instant,
    ) -> Vec<Result<UnitReceipt, UnitRefusal>> {
        if let Some(reason) = &self.sealed {
            return units.iter().map(|_| Err(Fault::sealed(reason).into())).collect();
        }
        let mut validator = BatchValidator::new(now);
        let results = units.iter().map(|unit| {
            check(unit)?;
            validator.validate(unit, &*self)
        });
        let results: Vec<_> = results.collect();
        self.commits += 1;
        self.units += results.iter().filter(|result| result.is_ok()).count() as u64;
        self.apply(validator.take_effect());
        results
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
        let known = match self.records.get(&key).map(|stored| &stored.record) {
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

    /// A part of a walk through all records of a kind, ordered by key. A place is the field of the last key.
    pub(super) fn walk(&self, kind: RecordKind, from: Option<&WalkPlace>, limit: usize, now: Instant) -> WalkPage {
        if kind != RecordKind::Lock {
            return self.records.walk(kind, from, limit);
        }
        let after = from.and_then(|place| LockName::parse(std::str::from_utf8(&place.0).ok()?).ok());
        let records = self.locks.held(after.as_ref(), limit.max(1), now);
        let last = records.last().filter(|_| records.len() >= limit).map(|stored| stored.record.key());
        let next = last.map(|key| WalkPlace(key_field(&key).into_bytes()));
        WalkPage { records, unreadable: Vec::new(), next }
    }

    /// Reports a healthy store: memory does not fail.
    pub(super) fn health(&self) -> StoreHealthReport {
        StoreHealthReport {
            trouble: None,
            description: "memory".to_owned(),
            commits: self.commits,
            units: self.units,
            sealed: self.sealed.clone(),
            warnings: Vec::new(),
        }
    }

    /// Writes what the accepted units of a batch change together.
    fn apply(&mut self, effect: NetEffect) {
        let changes = effect.records.into_iter().filter_map(|(key, record)| Some((key, record.change?)));
        for (key, NetChange { version, change, is_deletion }) in changes {
            self.hints.push(Hint::of(&change));
            if let (RecordKey::Run(run), true) = (&key, is_deletion) {
                self.outputs.remove(*run);
            }
            let record = match change {
                RecordChange::Put(record) => Some(StoredRecord { version, record }),
                RecordChange::Delete(_) => None,
            };
            self.put(key, record);
        }
        for (name, lock) in effect.locks {
            // Also if a lock was free: if it had expired, the runs that wait for it were not notified of that.
            self.hints.push(Hint::new(RecordKey::Lock(name.clone())));
            self.locks.set(name, lock.after);
        }
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

    /// Replaces a record. Deleting a run deletes its output.
    fn put(&mut self, key: RecordKey, new: Option<StoredRecord>) {
        if let (RecordKey::Run(run), None) = (&key, &new) {
            self.outputs.remove(*run);
        }
        self.records.put(key, new);
    }
}

impl VersionSource for MemoryState {
    fn version(&self, key: &RecordKey) -> Option<RecordVersion> {
        self.records.get(key).map(|stored| stored.version)
    }

    fn lock(&self, name: &LockName) -> Option<LockEntry> {
        self.locks.get(name)
    }
}

/// Whether only the time of the heartbeat has changed, which is not published.
fn is_same_but_later(old: &NodeRecord, new: &NodeRecord) -> bool {
    let NodeRecord { beat, gone, skew, .. } = old;
    *old == NodeRecord { beat: *beat, gone: *gone, skew: *skew, ..new.clone() }
}

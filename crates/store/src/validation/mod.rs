//! Decides units by versions alone, without any storage: which units of a commit take effect, why the others do not, and
//! what all of them change together.
//!
//! A store that can write a whole batch at once validates it against the versions that it has or remembers, and writes
//! the net effect. If the stored versions turn out to be different, it validates the batch again with these.

mod net_effect;
#[cfg(test)]
mod tests;

use cronhold_core::decision::{LockRelease, RecordChange};
use cronhold_core::record::{LockName, RecordKey, RecordVersion};
use cronhold_schedule::Instant;

pub use self::net_effect::{NetChange, NetEffect, NetLock, NetRecord};
use crate::{LockEntry, SeedlessMap, Unit, UnitReceipt, UnitRefusal};

/// The versions and locks that a store has, or is assumed to have.
pub trait VersionSource {
    /// The version of a record; `None` if it does not exist. The key is never that of a lock. In a store without foreign
    /// nodes, the foreign run of a job never exists.
    fn version(&self, key: &RecordKey) -> Option<RecordVersion>;

    /// What is stored about a lock, also if it is free or has expired; `None` if nothing is.
    fn lock(&self, name: &LockName) -> Option<LockEntry>;
}

/// Validates units one after the other. Each is decided on top of what the accepted units before it change.
#[derive(Debug)]
pub struct BatchValidator {
    now: Instant,
    /// The versions of records that accepted units have changed.
    versions: SeedlessMap<RecordKey, Option<RecordVersion>>,
    /// Locks that accepted units have taken or released.
    locks: SeedlessMap<LockName, Option<LockEntry>>,
    effect: NetEffect,
}

impl BatchValidator {
    /// A validator for units that are committed at `now` by the store's clock.
    pub fn new(now: Instant) -> Self {
        Self { now, versions: SeedlessMap::default(), locks: SeedlessMap::default(), effect: NetEffect::default() }
    }

    /// Decides a unit. A unit that is refused changes nothing. The refusal names the first record in the order of
    /// `compare` that has another version, or else the first lock in the order of `take` that another run holds.
    pub fn validate(&mut self, unit: &Unit, stored: &impl VersionSource) -> Result<UnitReceipt, UnitRefusal> {
        let positions = unit.change_positions()?;
        for (key, expected) in &unit.compare {
            if self.version(key, stored) != *expected {
                return Err(UnitRefusal::Conflict(key.clone()));
            }
        }
        for take in &unit.take {
            let entry = self.lock(&take.lock, stored);
            if let Some(refusal) = entry.and_then(|entry| entry.refusal(take, &unit.free, self.now)) {
                return Err(refusal);
            }
        }
        for (key, expected) in &unit.compare {
            self.effect.add_compare(key, *expected);
        }
        for (change, position) in unit.changes.iter().zip(positions) {
            let key = &unit.compare[position].0;
            let is_put = matches!(change, RecordChange::Put(_));
            self.versions.insert(key.clone(), is_put.then_some(unit.version));
            self.effect.add_change(key, unit.version, change);
        }
        for LockRelease { lock, holder } in &unit.free {
            self.change_lock(lock, stored, |entry| {
                if let Some(entry) = entry {
                    entry.release(*holder);
                }
            });
        }
        let (mut fences, now) = (Vec::with_capacity(unit.take.len()), self.now);
        for take in &unit.take {
            let fence = self.change_lock(&take.lock, stored, |entry| {
                entry.get_or_insert_default().acquire(take, unit.version, now)
            });
            fences.push((take.lock.clone(), fence));
        }
        Ok(UnitReceipt { fences })
    }

    /// Takes what the units that were accepted since the last call change together. Units that are validated later still
    /// build on it, so that a store can write a long batch in parts.
    pub fn take_effect(&mut self) -> NetEffect {
        std::mem::take(&mut self.effect)
    }

    fn version(&self, key: &RecordKey, stored: &impl VersionSource) -> Option<RecordVersion> {
        self.versions.get(key).copied().unwrap_or_else(|| stored.version(key))
    }

    fn lock(&self, name: &LockName, stored: &impl VersionSource) -> Option<LockEntry> {
        self.locks.get(name).copied().unwrap_or_else(|| stored.lock(name))
    }

    fn change_lock<T>(
        &mut self,
        name: &LockName,
        stored: &impl VersionSource,
        change: impl FnOnce(&mut Option<LockEntry>) -> T,
    ) -> T {
        let before = self.lock(name, stored);
        let mut after = before;
        let result = change(&mut after);
        self.locks.insert(name.clone(), after);
        self.effect.add_lock(name, before, after);
        result
    }
}

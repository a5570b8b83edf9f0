//! The locks that the units of a commit take or release, as they are stored. They are read for every commit, because
//! other processes change them without a notification.

use cronhold_core::record::LockName;
use cronhold_schedule::Instant;
use cronhold_store::{Fault, LockEntry, SeedlessMap, UnreadableRecord};

use super::transaction_unit::TransactionUnit;
use crate::ensemble::Ensemble;
use crate::wire::{ZnodeStat, ZooKeeperSession};
use crate::{lock_text, record_text};

/// Locks, and the time by which they are valid.
#[derive(Debug)]
pub(super) struct LockView {
    pub(super) now: Instant,
    /// Locks that have a znode, with its data version.
    locks: SeedlessMap<LockName, (Option<LockEntry>, i32)>,
    /// Locks whose znode cannot be read.
    unreadable: SeedlessMap<LockName, UnreadableRecord>,
}

impl LockView {
    /// Reads the locks of these units.
    pub(super) async fn load(
        ensemble: &Ensemble,
        session: &ZooKeeperSession,
        units: impl Iterator<Item = &TransactionUnit>,
    ) -> Result<Self, Fault> {
        let mut names: Vec<&LockName> = units.flat_map(lock_names).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            // No unit depends on the time.
            return Ok(Self::empty(Instant::EPOCH));
        }
        let paths: Vec<String> = names.iter().map(|name| ensemble.paths().lock(name)).collect();
        let found = session.read(&paths, true).await?;
        let stats: Vec<ZnodeStat> = found.iter().flatten().map(|znode| znode.stat).collect();
        let now = ensemble.time_after(&stats).await?;
        let mut view = Self::empty(now);
        for ((name, path), znode) in names.into_iter().zip(&paths).zip(found) {
            let Some(znode) = znode else { continue };
            let end = |ttl| ensemble.clock().end_of_lock(&znode.stat, ttl);
            match lock_text::decode(name, path, &znode.data, end) {
                Ok(entry) => drop(view.locks.insert(name.clone(), (entry, znode.stat.version))),
                Err(unreadable) => drop(view.unreadable.insert(name.clone(), unreadable)),
            }
        }
        Ok(view)
    }

    fn empty(now: Instant) -> Self {
        Self { now, locks: SeedlessMap::default(), unreadable: SeedlessMap::default() }
    }

    /// Fails if a lock of the unit cannot be read.
    pub(super) fn check(&self, packed: &TransactionUnit) -> Result<(), Fault> {
        if self.unreadable.is_empty() {
            return Ok(());
        }
        match lock_names(packed).find_map(|name| self.unreadable.get(name)) {
            Some(unreadable) => Err(record_text::fault(unreadable.clone())),
            None => Ok(()),
        }
    }

    pub(super) fn entry(&self, name: &LockName) -> Option<LockEntry> {
        self.locks.get(name).and_then(|(entry, _)| *entry)
    }

    pub(super) fn data_version(&self, name: &LockName) -> Option<i32> {
        self.locks.get(name).map(|(_, version)| *version)
    }
}

fn lock_names(packed: &TransactionUnit) -> impl Iterator<Item = &LockName> {
    let taken = packed.unit.take.iter().map(|take| &take.lock);
    taken.chain(packed.unit.free.iter().map(|free| &free.lock))
}

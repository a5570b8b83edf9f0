//! The unit of a commit: what every store can do atomically. It compares the versions of several small records, releases
//! and takes locks, and writes records. The units of one commit are independent and share only the round trip.

use cronhold_core::RunId;
use cronhold_core::decision::{LockRelease, LockTake, RecordChange};
use cronhold_core::record::{LockName, RecordKey, RecordKind, RecordVersion};

use crate::Fault;

/// Changes that take effect all together or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// The version of all records that the unit writes. No other unit ever has the same version.
    pub version: RecordVersion,
    /// Records and the versions that they must have; `None` means that the record must not exist. The list contains every
    /// key of `changes`, each key once, and no locks.
    pub compare: Vec<(RecordKey, Option<RecordVersion>)>,
    /// Records to write or delete. Each key appears once; locks are not changed this way.
    pub changes: Vec<RecordChange>,
    /// Locks to take. A run that already holds the lock takes it again.
    pub take: Vec<LockTake>,
    /// Locks to release, if the run still holds them. The store releases them before it takes others.
    pub free: Vec<LockRelease>,
}

impl Unit {
    /// For each change, the position of its record in `compare`. Fails if the unit does not have the required form; such a
    /// unit is a bug of the caller, and is refused without any effect on other units.
    pub fn change_positions(&self) -> Result<Vec<usize>, Fault> {
        let invalid = |what: String| Fault::Permanent(format!("invalid unit: {what}"));
        if let Some((key, _)) = self.compare.iter().find(|(key, _)| key.kind() == RecordKind::Lock) {
            return Err(invalid(format!("it compares {key}")));
        }
        let mut is_changed = vec![false; self.compare.len()];
        let mut positions = Vec::with_capacity(self.changes.len());
        let mut next = 0;
        for change in &self.changes {
            let key = change.key();
            if matches!(key.kind(), RecordKind::Lock | RecordKind::Foreign) {
                return Err(invalid(format!("it changes {key}")));
            }
            // Changes are usually in the order of the compared records.
            let (before, after) = self.compare.split_at(next);
            let Some(found) = after.iter().chain(before).position(|(compared, _)| *compared == key) else {
                return Err(invalid(format!("it changes {key} without comparing it")));
            };
            let position = (next + found) % self.compare.len();
            if std::mem::replace(&mut is_changed[position], true) {
                return Err(invalid(format!("it changes {key} twice")));
            }
            positions.push(position);
            next = position + 1;
        }
        Ok(positions)
    }
}

/// The result of a unit that took effect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnitReceipt {
    /// The fence of each lock that the unit took. The fences of a lock only grow.
    pub fences: Vec<(LockName, u64)>,
}

/// Why a unit did not take effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitRefusal {
    /// A record does not have the version that the unit expects.
    #[error("{0} has changed")]
    Conflict(RecordKey),
    /// Another run holds a lock.
    #[error("the lock `{lock}` is held by run {holder}")]
    Held {
        lock: LockName,
        /// The run that holds it.
        holder: RunId,
    },
    /// The store failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

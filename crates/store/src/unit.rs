//! The unit of a commit: what every store can do atomically. It compares the versions of several small records, releases
//! and takes locks, and writes records. The units of one commit are independent and share only the round trip.

use cronhold_core::RunId;
use cronhold_core::decision::{LockRelease, LockTake, RecordChange};
use cronhold_core::record::{LockName, RecordKey, RecordVersion};

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

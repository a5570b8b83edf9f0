//! The largest thing that all stores can do at once: compare versions of several small records, take locks, replace the
//! records. A unit happens as a whole or not at all; units of one commit are independent and share only the journey.

use cronhold_core::RunId;
use cronhold_core::decision::{Change, Free, Take};
use cronhold_core::record::{Key, LockName, Version};

use crate::Fault;

/// Something that happens as a whole or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// The version that all records it writes get. No other unit ever has it.
    pub version: Version,
    /// Records that must have these versions; `None` must not be there. Every key that is changed is among them, each
    /// key once, no locks.
    pub compare: Vec<(Key, Option<Version>)>,
    /// Records that are written or deleted, each key once, no locks.
    pub changes: Vec<Change>,
    /// Locks that are taken; a lock that the same run holds already is taken again.
    pub take: Vec<Take>,
    /// Locks that are freed, where the run still holds them. They are freed before others are taken.
    pub free: Vec<Free>,
}

/// What came of a unit that was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Committed {
    /// The fences of the locks it took: numbers that only grow for each lock.
    pub fences: Vec<(LockName, u64)>,
}

/// Why a unit was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A record has another version than the unit expected.
    #[error("{0} has changed")]
    Conflict(Key),
    /// Someone else holds a lock.
    #[error("the lock `{lock}` is held by run {holder}")]
    Held {
        /// Which lock.
        lock: LockName,
        /// Who holds it.
        holder: RunId,
    },
    /// The store failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

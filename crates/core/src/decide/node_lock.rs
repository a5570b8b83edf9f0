//! Acquires and releases locks of nodes rather than of runs, such as the lock of a job file loader. The node renews its
//! lock with each heartbeat.

use cronhold_schedule::Span;

use crate::decision::{DecidedUnit, LockRelease, LockTake, Rejection};
use crate::ids::RunId;
use crate::record::LockName;
use crate::view::{DecisionView, Halt};

pub(super) fn acquire(view: &DecisionView<'_>, lock: &LockName, holder: RunId, ttl: Span) -> Result<DecidedUnit, Halt> {
    match view.lock(lock) {
        Some(held) if held.holder != holder => {
            Err(Rejection::Locked { lock: lock.clone(), holder: held.holder }.into())
        }
        // A holder that has the lock already, perhaps from before a restart, extends it.
        _ => {
            let ttl = view.world.is_shared.then_some(ttl);
            Ok(DecidedUnit { take: vec![LockTake { lock: lock.clone(), holder, ttl }], ..DecidedUnit::default() })
        }
    }
}

pub(super) fn release(lock: &LockName, holder: RunId) -> DecidedUnit {
    DecidedUnit { free: vec![LockRelease { lock: lock.clone(), holder }], ..DecidedUnit::default() }
}

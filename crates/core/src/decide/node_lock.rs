//! Acquires and releases locks of nodes rather than of runs, such as the lock of a job file loader. The node renews its
//! lock with each heartbeat.

use cronhold_schedule::Span;

use crate::decision::{Done, Free, Rejection, Take};
use crate::ids::RunId;
use crate::record::LockName;
use crate::view::{Halt, View};

pub(super) fn acquire(view: &View<'_>, lock: &LockName, holder: RunId, ttl: Span) -> Result<Done, Halt> {
    match view.lock(lock) {
        Some(held) if held.holder != holder => {
            Err(Rejection::Locked { lock: lock.clone(), holder: held.holder }.into())
        }
        // A holder that has the lock already, perhaps from before a restart, extends it.
        _ => {
            let ttl = view.world.is_shared.then_some(ttl);
            Ok(Done { take: vec![Take { lock: lock.clone(), holder, ttl }], ..Done::default() })
        }
    }
}

pub(super) fn release(lock: &LockName, holder: RunId) -> Done {
    Done { free: vec![Free { lock: lock.clone(), holder }], ..Done::default() }
}

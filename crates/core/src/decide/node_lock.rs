//! A node becomes the only one that does something, such as apply a directory of job files. It is a lock without a run;
//! the node renews it with each beat.

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
        // Whoever has it already, perhaps in an earlier life, has it for longer.
        _ => {
            let ttl = view.world.is_shared.then_some(ttl);
            Ok(Done { take: vec![Take { lock: lock.clone(), holder, ttl }], ..Done::default() })
        }
    }
}

pub(super) fn release(lock: &LockName, holder: RunId) -> Done {
    Done { free: vec![Free { lock: lock.clone(), holder }], ..Done::default() }
}

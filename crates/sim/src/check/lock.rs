//! No two programs under one lock, and no lock held by a run that has none.

use std::collections::BTreeMap;

use cronhold_core::record::{LockName, Run};
use cronhold_core::{RunId, World};
use cronhold_schedule::Instant;
use cronhold_store::Unit;

use super::{Checker, Opinion};
use crate::mirror::{Mirror, name};

/// Remembers which programs are there under which lock.
#[derive(Debug, Default)]
pub(super) struct Lock {
    live: BTreeMap<LockName, (RunId, String)>,
}

impl Checker for Lock {
    fn name(&self) -> &'static str {
        "no two under one lock"
    }

    fn before(&mut self, mirror: &Mirror, unit: &Unit, _: &World) -> Opinion {
        for take in &unit.take {
            let is_freed = |holder: RunId| unit.free.iter().any(|free| free.lock == take.lock && free.holder == holder);
            if let Some(holder) =
                mirror.locks.get(&take.lock).filter(|holder| **holder != take.holder && !is_freed(**holder))
            {
                return Err(format!("run {} takes the lock `{}` from run {holder}", take.holder, take.lock));
            }
        }
        Ok(())
    }

    fn after(&mut self, mirror: &Mirror, _: &Unit) -> Opinion {
        for (lock, holder) in &mirror.locks {
            let holder = mirror.runs.get(holder).ok_or_else(|| format!("`{lock}` is held by a run that never was"))?;
            if !holder.state.has_program() {
                return Err(format!("{} is {} and holds the lock `{lock}`", name(holder), holder.state));
            }
        }
        Ok(())
    }

    fn launched(&mut self, run: &Run) -> Opinion {
        let Some(lock) = &run.lock else { return Ok(()) };
        match self.live.insert(lock.clone(), (run.id, name(run))) {
            Some((_, other)) => Err(format!("{} starts under the lock `{lock}` beside {other}", name(run))),
            None => Ok(()),
        }
    }

    fn ended(&mut self, run: RunId) {
        self.live.retain(|_, (live, _)| *live != run);
    }

    fn rested(&mut self, mirror: &Mirror, _: &World, _: Instant) -> Opinion {
        match mirror.locks.keys().next() {
            Some(lock) => Err(format!("the lock `{lock}` is never freed")),
            None => Ok(()),
        }
    }
}

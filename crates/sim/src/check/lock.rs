//! One program per lock, on any machine, and no lock held by a run without a program. A program counts from its launch
//! to its actual end on its machine, whatever the store records.

use std::collections::BTreeMap;

use cronhold_core::RunId;
use cronhold_core::record::LockName;
use cronhold_store::{Unit, UnitReceipt};

use super::{CheckResult, CheckerContext, InvariantChecker, ObservedLaunch, runs};
use crate::store_model::{ModelLock, name, name_of};

/// Tracks live programs by lock.
#[derive(Debug, Default)]
pub(super) struct LockChecker {
    live: BTreeMap<LockName, (RunId, String)>,
    /// Locks by run.
    of_run: BTreeMap<RunId, LockName>,
}

impl InvariantChecker for LockChecker {
    fn name(&self) -> &'static str {
        "one program per lock"
    }

    fn before(&mut self, CheckerContext { model, now, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for free in &unit.free {
            let is_over = || runs(unit).any(|run| run.id == free.holder && run.state.is_finished());
            let holds = model.locks.get(&free.lock).is_some_and(|held| held.by == free.holder);
            if holds && model.runs.get(&free.holder).is_some_and(|run| run.state.has_program()) && !is_over() {
                let holder = name_of(model, free.holder);
                return Err(format!("the lock `{}` is freed while {holder} has its program", free.lock));
            }
        }
        for take in &unit.take {
            let is_freed = |holder: RunId| unit.free.iter().any(|free| free.lock == take.lock && free.holder == holder);
            let holder = model.holder(&take.lock, now).filter(|holder| *holder != take.holder && !is_freed(*holder));
            if let Some(holder) = holder {
                return Err(format!("run {} takes the lock `{}` from run {holder}", take.holder, take.lock));
            }
        }
        Ok(())
    }

    fn after(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit, _: &UnitReceipt) -> CheckResult {
        for run in runs(unit).filter(|run| !run.state.has_program()) {
            let Some(lock) = &run.lock else { continue };
            if model.locks.get(lock).is_some_and(|held| held.by == run.id) {
                return Err(format!("{} is {} and holds the lock `{lock}`", name(run), run.state));
            }
        }
        Ok(())
    }

    fn launched(&mut self, _: CheckerContext<'_>, ObservedLaunch { run, .. }: &ObservedLaunch<'_>) -> CheckResult {
        let Some(lock) = &run.lock else { return Ok(()) };
        self.of_run.insert(run.id, lock.clone());
        match self.live.insert(lock.clone(), (run.id, name(run))) {
            Some((_, other)) => Err(format!("{} starts under the lock `{lock}` beside {other}", name(run))),
            None => Ok(()),
        }
    }

    fn ended(&mut self, _: CheckerContext<'_>, run: RunId) -> CheckResult {
        if let Some(lock) = self.of_run.remove(&run)
            && self.live.get(&lock).is_some_and(|(live, _)| *live == run)
        {
            self.live.remove(&lock);
        }
        Ok(())
    }

    /// A lock without a run, such as that of a directory of job files, may be held forever.
    fn at_rest(&mut self, CheckerContext { model, .. }: CheckerContext<'_>) -> CheckResult {
        // A mark is never released: it expires.
        let is_left = |(lock, held): &(&LockName, &ModelLock)| !lock.is_mark() && model.runs.contains_key(&held.by);
        match model.locks.iter().find(is_left) {
            Some((lock, _)) => Err(format!("the lock `{lock}` is never freed")),
            None => Ok(()),
        }
    }
}

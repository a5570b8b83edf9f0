//! Fences only grow: each holder of a lock has a higher number than all before it, and its program is told exactly that
//! number, so that whoever it talks to can turn away a program whose lock was lost.

use std::collections::BTreeMap;

use cronhold_core::RunId;
use cronhold_core::record::LockName;
use cronhold_store::{Unit, UnitReceipt};

use super::{CheckResult, CheckerContext, InvariantChecker, ObservedLaunch};
use crate::store_model::name;

/// Remembers the highest numbers.
#[derive(Debug, Default)]
pub(super) struct FenceChecker {
    /// What the store gave last, and to whom.
    given: BTreeMap<LockName, (u64, RunId)>,
    /// The highest that a program was told.
    told: BTreeMap<LockName, u64>,
    /// What each run that has not started yet was given.
    of_run: BTreeMap<RunId, u64>,
}

impl InvariantChecker for FenceChecker {
    fn name(&self) -> &'static str {
        "fences only grow"
    }

    fn after(&mut self, _: CheckerContext<'_>, unit: &Unit, committed: &UnitReceipt) -> CheckResult {
        for take in &unit.take {
            let given = committed.fences.iter().find(|(lock, _)| *lock == take.lock).map(|(_, fence)| *fence);
            let Some(fence) = given else { return Err(format!("the lock `{}` was taken without a fence", take.lock)) };
            let before = self.given.insert(take.lock.clone(), (fence, take.holder));
            let grows = before.is_none_or(|(last, holder)| fence > last || fence == last && holder == take.holder);
            if !grows {
                let last = before.map_or(0, |(last, _)| last);
                return Err(format!("the fence of the lock `{}` went from {last} to {fence}", take.lock));
            }
            self.of_run.insert(take.holder, fence);
        }
        Ok(())
    }

    fn launched(
        &mut self,
        _: CheckerContext<'_>,
        ObservedLaunch { run, fence, .. }: &ObservedLaunch<'_>,
    ) -> CheckResult {
        let Some(lock) = &run.lock else { return Ok(()) };
        let given = self.of_run.remove(&run.id);
        let Some(fence) = *fence else { return Err(format!("{} is not told the fence of `{lock}`", name(run))) };
        if given.is_some_and(|given| given != fence) {
            return Err(format!("{} is told another fence of `{lock}` than it has", name(run)));
        }
        match self.told.insert(lock.clone(), fence) {
            Some(last) if last >= fence => {
                Err(format!("{} is told the fence {fence} of `{lock}` after one was told {last}", name(run)))
            }
            _ => Ok(()),
        }
    }
}

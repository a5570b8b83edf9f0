//! Fences only increase: each holder of a lock gets a higher number than all before it, and its program receives
//! exactly that number. Resources can then reject a program whose lock was lost.

use std::collections::BTreeMap;

use cronhold_core::RunId;
use cronhold_core::record::LockName;
use cronhold_store::{Unit, UnitReceipt};

use super::{CheckResult, CheckerContext, InvariantChecker, ObservedLaunch};
use crate::store_model::name;

/// Tracks the highest fences.
#[derive(Debug, Default)]
pub(super) struct FenceChecker {
    /// The last fence of each lock, and its holder.
    given: BTreeMap<LockName, (u64, RunId)>,
    /// The highest fence that a program received.
    received: BTreeMap<LockName, u64>,
    /// The fence of each lock of a run that has not been launched yet. A run can have the mark of its trigger as well.
    of_run: BTreeMap<(RunId, LockName), u64>,
}

impl InvariantChecker for FenceChecker {
    fn name(&self) -> &'static str {
        "fences only increase"
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
            self.of_run.insert((take.holder, take.lock.clone()), fence);
        }
        Ok(())
    }

    fn launched(
        &mut self,
        _: CheckerContext<'_>,
        ObservedLaunch { run, fence, .. }: &ObservedLaunch<'_>,
    ) -> CheckResult {
        let Some(lock) = &run.lock else { return Ok(()) };
        let given = self.of_run.remove(&(run.id, lock.clone()));
        let Some(fence) = *fence else { return Err(format!("{} does not receive the fence of `{lock}`", name(run))) };
        if given.is_some_and(|given| given != fence) {
            return Err(format!("{} receives a wrong fence of `{lock}`", name(run)));
        }
        match self.received.insert(lock.clone(), fence) {
            Some(last) if last >= fence => {
                Err(format!("{} receives the fence {fence} of `{lock}` after {last}", name(run)))
            }
            _ => Ok(()),
        }
    }
}

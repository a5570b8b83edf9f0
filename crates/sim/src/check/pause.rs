//! Nothing starts automatically while it is paused or after its job was removed. From the commit of the pause on, only
//! what an operator requests explicitly gets a program.

use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, is_started_explicitly, starting};
use crate::store_model::name;

/// Checks every run that gets a program.
#[derive(Debug, Default)]
pub(super) struct PauseChecker;

impl InvariantChecker for PauseChecker {
    fn name(&self) -> &'static str {
        "nothing starts automatically while paused"
    }

    fn before(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in starting(model, unit) {
            if run.is_by_operator() || is_started_explicitly(run) {
                continue;
            }
            // A pause that ends by itself ends by the clock of the node that starts the run.
            if model.is_paused(&run.job, run.started().unwrap_or(run.nominal)) {
                return Err(format!("{} starts while its job or everything is paused", name(run)));
            }
            if model.jobs.get(&run.job).is_none_or(|job| job.uid != run.uid) {
                return Err(format!("{} starts though its job was removed", name(run)));
            }
        }
        Ok(())
    }
}

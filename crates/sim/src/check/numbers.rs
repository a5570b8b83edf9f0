//! Run numbers are unique within their job, even if the job is removed and created again.

use std::collections::BTreeMap;

use cronhold_core::{JobId, RunId, RunNumber};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, runs};
use crate::store_model::name;

/// Tracks the run of each number.
#[derive(Debug, Default)]
pub(super) struct RunNumberChecker {
    given: BTreeMap<(JobId, RunNumber), RunId>,
}

impl InvariantChecker for RunNumberChecker {
    fn name(&self) -> &'static str {
        "run numbers are unique"
    }

    fn before(&mut self, _: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in runs(unit) {
            if *self.given.entry((run.job.clone(), run.number)).or_insert(run.id) != run.id {
                return Err(format!("two runs are called {}", name(run)));
            }
        }
        Ok(())
    }
}

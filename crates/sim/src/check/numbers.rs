//! Numbers of runs are unique within their job, also when the job was removed and made again.

use std::collections::BTreeMap;

use cronhold_core::{JobId, RunId, RunNumber};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, runs};
use crate::store_model::name;

/// Remembers whose number is whose.
#[derive(Debug, Default)]
pub(super) struct RunNumberChecker {
    given: BTreeMap<(JobId, RunNumber), RunId>,
}

impl InvariantChecker for RunNumberChecker {
    fn name(&self) -> &'static str {
        "numbers are unique"
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

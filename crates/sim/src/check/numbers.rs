//! Run numbers are unique within their job, even if the job is removed and created again.

use std::collections::BTreeMap;

use cronhold_core::{JobId, RunId, RunNumber};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, runs, spans};

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
        let runs = runs(unit).map(|run| (&run.job, run.number, run.id));
        let spans = spans(unit).map(|span| (&span.job, span.number, span.id));
        for (job, number, id) in runs.chain(spans) {
            if *self.given.entry((job.clone(), number)).or_insert(id) != id {
                return Err(format!("two runs are called {job}#{number}"));
            }
        }
        Ok(())
    }
}

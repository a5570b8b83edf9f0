//! Every finished run has a reason that fits its state; only a success may have none.

use cronhold_core::State;
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, runs, spans};
use crate::store_model::{name, span_name};

/// Checks every finished run.
#[derive(Debug, Default)]
pub(super) struct ReasonChecker;

impl InvariantChecker for ReasonChecker {
    fn name(&self) -> &'static str {
        "every outcome has a reason"
    }

    fn before(&mut self, _: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in runs(unit).filter(|run| run.state.is_finished()) {
            match &run.reason {
                Some(reason) if !reason.fits(run.state) => {
                    return Err(format!("{} is {} with an impossible reason: {reason}", name(run), run.state));
                }
                None if run.state != State::Success => {
                    return Err(format!("{} is {} without a reason", name(run), run.state));
                }
                _ => {}
            }
        }
        match spans(unit).find(|span| !span.reason.fits(State::Skipped)) {
            Some(span) => Err(format!("{} is a span with an impossible reason: {}", span_name(span), span.reason)),
            None => Ok(()),
        }
    }
}

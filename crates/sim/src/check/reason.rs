//! Every run that is over says why: anything but a plain success has a reason, and one that fits its state.

use cronhold_core::State;
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, runs, spans};
use crate::store_model::{name, span_name};

/// Looks at every run that is over.
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
                    return Err(format!("{} is {} for a reason that cannot be: {reason}", name(run), run.state));
                }
                None if run.state != State::Success => {
                    return Err(format!("{} is {} for no reason", name(run), run.state));
                }
                _ => {}
            }
        }
        match spans(unit).find(|span| !span.reason.fits(State::Skipped)) {
            Some(span) => Err(format!("{} is a span for a reason that cannot be: {}", span_name(span), span.reason)),
            None => Ok(()),
        }
    }
}

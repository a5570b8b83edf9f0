//! Nothing starts before it is due, by the time of the store that nodes share. A node that is unsure of that time by
//! more than half a second claims nothing, so nothing can be earlier than by this. On a store of one node its own clock
//! decides, which somebody may have set in between; there is nothing to compare it with.

use cronhold_core::State;
use cronhold_core::record::Run;
use cronhold_schedule::{Instant, Span};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, is_asked, starting};
use crate::store_model::{StoreModel, name};

/// How wrong a node may be about the store's time.
const UNSURE_MAX: Span = Span::from_millis(500);

/// After somebody set the store's clock nodes need a beat or two to learn of it.
const LEARN: Span = Span::from_secs(30);

/// Looks at every run that is about to get a program.
#[derive(Debug, Default)]
pub(super) struct EarlyStartChecker {
    /// What the store's clock said when the simulation began, as far as it says now.
    begin: Option<Instant>,
    /// When that changed last.
    set: Option<Span>,
}

impl InvariantChecker for EarlyStartChecker {
    fn name(&self) -> &'static str {
        "nothing starts before it is due"
    }

    fn before(
        &mut self,
        CheckerContext { model, now, at, is_shared, .. }: CheckerContext<'_>,
        unit: &Unit,
    ) -> CheckResult {
        let begin = Some(now.minus(at));
        if self.begin.is_some_and(|before| Some(before) != begin) {
            self.set = Some(at);
        }
        self.begin = begin;
        if !is_shared || self.set.is_some_and(|set| at.minus(set) < LEARN) {
            return Ok(());
        }
        for run in starting(model, unit).filter(|run| !is_asked(run)) {
            let Some(due) = due(model, run) else { continue };
            if due > now.plus(UNSURE_MAX) {
                return Err(format!("{} starts at {now} and is due at {due}", name(run)));
            }
        }
        Ok(())
    }
}

/// When a run was to start, as far as its records say.
fn due(model: &StoreModel, run: &Run) -> Option<Instant> {
    match model.runs.get(&run.id) {
        Some(old) if old.state == State::Scheduled => old.due,
        Some(_) => None,
        None => {
            let schedule = run.schedule.clone()?;
            let cursor = model.cursors.get(&(run.job.clone(), schedule));
            // The start of a node is due when the node says that it is.
            if cursor.is_some_and(|cursor| cursor.at_start) {
                return None;
            }
            let wake = cursor.filter(|cursor| cursor.next == Some(run.nominal)).and_then(|cursor| cursor.wake);
            Some(wake.unwrap_or(run.nominal))
        }
    }
}

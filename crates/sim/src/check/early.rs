//! Nothing starts before it is due, by the time of a shared store. A node that is uncertain of that time by more than
//! half a second claims nothing, so that nothing starts earlier than that. With a local store the node's own clock
//! decides; it may have been set meanwhile, and there is no reference to compare it with.

use cronhold_core::State;
use cronhold_core::record::Run;
use cronhold_schedule::{Instant, Span};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, is_started_explicitly, starting};
use crate::store_model::{StoreModel, name};

/// Maximum error of a node about the store's time.
const UNSURE_MAX: Span = Span::from_millis(500);

/// After the store's clock is set, nodes need one or two heartbeats to learn the new time.
const LEARN: Span = Span::from_secs(30);

/// Checks every run that gets a program.
#[derive(Debug, Default)]
pub(super) struct EarlyStartChecker {
    /// Start of the simulation by the store's current clock; it changes when the clock is set.
    begin: Option<Instant>,
    /// When the store's clock was last set.
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
        for run in starting(model, unit).filter(|run| !is_started_explicitly(run)) {
            let Some(due) = due(model, run) else { continue };
            if due > now.plus(UNSURE_MAX) {
                return Err(format!("{} starts at {now} and is due at {due}", name(run)));
            }
        }
        Ok(())
    }
}

/// When a run is due, according to its records.
fn due(model: &StoreModel, run: &Run) -> Option<Instant> {
    match model.runs.get(&run.id) {
        Some(old) if old.state == State::Scheduled => old.due,
        Some(_) => None,
        None => {
            let schedule = run.schedule.clone()?;
            let cursor = model.cursors.get(&(run.job.clone(), schedule));
            // For a schedule on node start, the node itself decides when it is due.
            if cursor.is_some_and(|cursor| cursor.at_start) {
                return None;
            }
            let wake = cursor.filter(|cursor| cursor.next == Some(run.nominal)).and_then(|cursor| cursor.wake);
            Some(wake.unwrap_or(run.nominal))
        }
    }
}

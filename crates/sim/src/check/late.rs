//! A run is late once, at the time that its job says, and all attempts of it together. The time stays with the run until
//! that is noticed or the run has ended. That it is noticed in time is an obligation like others.

use cronhold_core::record::{Run, TransitionKind};
use cronhold_schedule::Instant;
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, runs};
use crate::store_model::name;

/// Compares the time at which each written run is late with the one before.
#[derive(Debug, Default)]
pub(super) struct LateRunChecker;

impl InvariantChecker for LateRunChecker {
    fn name(&self) -> &'static str {
        "runs are late once"
    }

    fn before(&mut self, context: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in runs(unit) {
            let notes = run.log.iter().filter(|entry| entry.kind == TransitionKind::Late).count();
            if notes > 1 {
                return Err(format!("{} is late {notes} times", name(run)));
            }
            let expected = match context.model.runs.get(&run.id) {
                Some(old) => expected_change(old, run)?,
                None => expected_at_creation(context, run),
            };
            if run.late_at != expected {
                return Err(format!("{} is late at {:?}, not at {expected:?}", name(run), run.late_at));
            }
        }
        Ok(())
    }
}

/// When a written run should be late, if it existed before.
fn expected_change(old: &Run, run: &Run) -> Result<Option<Instant>, String> {
    let note = run.log.iter().skip(old.log.len()).find(|entry| entry.kind == TransitionKind::Late);
    match (note, old.late_at) {
        (Some(note), Some(at)) if note.at < at => Err(format!("{} is noted as late before {at}", name(run))),
        (Some(_), None) => Err(format!("{} is late and its job does not say so", name(run))),
        (Some(_), Some(_)) => Ok(None),
        (None, at) => Ok(at.filter(|_| !run.state.is_finished())),
    }
}

/// When a run that the unit creates should be late.
fn expected_at_creation(context: CheckerContext<'_>, run: &Run) -> Option<Instant> {
    if run.state.is_finished() {
        return None;
    }
    // An attempt that failed in the unit that created it is not there yet: its retry has the time that it had.
    if let Some(failed) = run.retry_of.and_then(|failed| context.model.runs.get(&failed)) {
        return failed.late_at;
    }
    let job = context.model.jobs.get(&run.job).filter(|job| job.uid == run.uid)?;
    let created = run.log.first().map_or(run.nominal, |entry| entry.at);
    job.job.late.map(|late| run.nominal.max(created).plus(late))
}

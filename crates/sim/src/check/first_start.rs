//! One first start per occurrence: at most one unit claims it and creates one run, or one run per node for a job with a
//! run on each node. No program of a run is launched twice, whatever crashes in between.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::record::{RecordVersion, Run, ScheduleId};
use cronhold_core::{JobUid, NodeId, RunId};
use cronhold_schedule::{Instant, Timing};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, ObservedLaunch, runs};
use crate::store_model::{StoreModel, name, name_of};

/// Identifies an occurrence: job, schedule, nominal time and, if the schedule counts from its previous run, the
/// generation. Such a schedule comes to the same time again if the clock is set back.
type OccurrenceKey = (JobUid, ScheduleId, Instant, Option<u32>);

/// The unit that claimed an occurrence, and the runs that it created, by target node.
#[derive(Debug)]
struct ClaimUnit {
    by: RecordVersion,
    runs: BTreeMap<Option<NodeId>, RunId>,
}

/// Tracks claims and launched programs.
#[derive(Debug, Default)]
pub(super) struct FirstStartChecker {
    claimed: BTreeMap<OccurrenceKey, ClaimUnit>,
    launched: BTreeSet<RunId>,
}

impl InvariantChecker for FirstStartChecker {
    fn name(&self) -> &'static str {
        "one first start per occurrence"
    }

    fn before(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in runs(unit).filter(|run| run.attempt == 1 && run.rerun_of.is_none()) {
            let Some(schedule) = &run.schedule else { continue };
            // A claim that is sent twice has the same run id; it must not reset the run.
            if let Some(old) = model.runs.get(&run.id).filter(|_| !model.gone.contains(&run.id)) {
                match run.log.starts_with(&old.log) {
                    true => continue,
                    false => return Err(format!("{} was created a second time", name(run))),
                }
            }
            let occurrence = (run.uid, schedule.clone(), run.nominal, generation(model, run, schedule));
            let fresh = || ClaimUnit { by: unit.version, runs: BTreeMap::new() };
            let claim = self.claimed.entry(occurrence).or_insert_with(fresh);
            let other = claim.runs.get(&run.target).or_else(|| claim.runs.values().next()).copied();
            let is_known = claim.runs.get(&run.target) == Some(&run.id);
            let is_one_more = !claim.runs.contains_key(&run.target) && claim.by == unit.version;
            if let Some(other) = other.filter(|_| !is_known && !is_one_more) {
                let other = name_of(model, other);
                return Err(format!("{} and {other} are both for {}", name(run), run.nominal));
            }
            claim.runs.insert(run.target, run.id);
            if model.gone.contains(&run.id) {
                return Err(format!("{} was deleted and exists again", name(run)));
            }
        }
        Ok(())
    }

    fn launched(&mut self, _: CheckerContext<'_>, ObservedLaunch { run, .. }: &ObservedLaunch<'_>) -> CheckResult {
        if self.launched.insert(run.id) { Ok(()) } else { Err(format!("the program of {} starts again", name(run))) }
    }
}

/// The generation that a new run of a schedule belongs to, if the schedule counts from its previous run.
fn generation(model: &StoreModel, run: &Run, schedule: &ScheduleId) -> Option<u32> {
    let job = model.jobs.get(&run.job)?;
    job.schedule(schedule).filter(|schedule| matches!(schedule.spec.timing, Timing::After { .. }))?;
    model.cursors.get(&(run.job.clone(), schedule.clone())).map(|cursor| cursor.generation)
}

//! Catch-up stays within its policy: no runs with `none`, only the newest occurrence of an outage with `last`, and
//! nothing older than the job allows. Every caught-up occurrence was in a backlog, and a node starts at most a limited
//! number per second.

use std::collections::BTreeMap;

use cronhold_core::job::CatchUpPolicy;
use cronhold_core::record::{Actor, Run};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, runs};
use crate::store_model::{StoreModel, name};

/// Three times what a node may start in a second. One second of its decisions can overlap three seconds of its own
/// counting, because its seconds start at another moment and it may correct its time meanwhile.
const RATE_MAX: u32 = 3 * 100;

/// Counts caught-up runs in the current second.
#[derive(Debug, Default)]
pub(super) struct CatchUpRateChecker {
    /// Second and count, by the writer id of each daemon process.
    rates: BTreeMap<u64, (i64, u32)>,
}

impl InvariantChecker for CatchUpRateChecker {
    fn name(&self) -> &'static str {
        "catch-up stays within its policy"
    }

    fn before(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in runs(unit).filter(|run| is_caught_up(run) && !model.runs.contains_key(&run.id)) {
            is_wanted(model, run).map_err(|what| format!("{} {what}", name(run)))?;
            let second = run.log.first().map_or(0, |first| first.at.secs());
            let (last, count) = self.rates.entry(writer(unit)).or_default();
            *count = if *last == second { *count + 1 } else { 1 };
            *last = second;
            if *count > RATE_MAX {
                return Err(format!("{} is caught-up run number {count} in one second", name(run)));
            }
        }
        Ok(())
    }
}

/// Whether a run is a first attempt that catches up an occurrence.
fn is_caught_up(run: &Run) -> bool {
    run.creator() == Some(&Actor::CatchUp) && run.attempt == 1 && !run.state.is_finished()
}

fn is_wanted(model: &StoreModel, run: &Run) -> CheckResult {
    let job = model.jobs.get(&run.job).ok_or("is caught up though its job was removed")?;
    let id = run.schedule.as_ref().ok_or("is caught up and has no schedule")?;
    let schedule = job.schedule(id).ok_or("is caught up though its schedule was removed")?;
    let wanted = job.job.catch_up;
    if wanted.policy == CatchUpPolicy::None {
        return Err("is caught up though the policy is none".to_owned());
    }
    let decided = run.log.first().map_or(run.nominal, |first| first.at);
    if run.nominal.plus(schedule.spec.jitter).plus(wanted.within) < decided {
        return Err(format!("is caught up {} late, and {} is allowed", decided.since(run.nominal), wanted.within));
    }
    let is_only_one = matches!(schedule.spec.timing, cronhold_schedule::Timing::After { .. });
    let Some(backlog) = model.backlogs.get(&(run.job.clone(), id.clone())) else {
        return if is_only_one { Ok(()) } else { Err("is caught up without a backlog".to_owned()) };
    };
    // A schedule that counts from the previous run may have had another timing before, with a backlog that is still in
    // progress.
    if !backlog.holds(run.nominal) && !is_only_one {
        return Err("is caught up and was not in the backlog".to_owned());
    }
    let newest = backlog.later.last().map_or(backlog.to, |last| last.to);
    // A changed job may have a backlog from when its policy was `all`.
    let is_unchanged = job.revision == 1;
    if is_unchanged && wanted.policy == CatchUpPolicy::Last && run.nominal != newest {
        return Err("is caught up and is not the last of its outage".to_owned());
    }
    Ok(())
}

/// The writer of a unit, which is in the high bits of its version.
fn writer(unit: &Unit) -> u64 {
    unit.version.bits() >> 40
}

//! Catching up stays within its policy: nothing where none is wanted, the newest of an outage where only the last is, and
//! nothing older than the job wants; always something that a backlog holds, and no more a second than a node may start.

use std::collections::BTreeMap;

use cronhold_core::job::CatchUpPolicy;
use cronhold_core::record::{Actor, Run};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, runs};
use crate::store_model::{StoreModel, name};

/// What a node may start in a second, three times: a second of its decisions touches three of its own, because its
/// seconds begin elsewhere and it may learn meanwhile that it was wrong about the time.
const RATE_MAX: u32 = 3 * 100;

/// Counts what was started in the second at which a node has arrived.
#[derive(Debug, Default)]
pub(super) struct CatchUpRateChecker {
    /// For each life of a node, by the number of its writer.
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
                return Err(format!("{} is number {count} that is caught up in one second", name(run)));
            }
        }
        Ok(())
    }
}

/// Whether a run is a first attempt that makes up for an occurrence.
fn is_caught_up(run: &Run) -> bool {
    run.creator() == Some(&Actor::CatchUp) && run.attempt == 1 && !run.state.is_finished()
}

fn is_wanted(model: &StoreModel, run: &Run) -> CheckResult {
    let job = model.jobs.get(&run.job).ok_or("is caught up though its job was removed")?;
    let id = run.schedule.as_ref().ok_or("is caught up and has no schedule")?;
    let schedule = job.schedule(id).ok_or("is caught up though its schedule was removed")?;
    let wanted = job.job.catch_up;
    if wanted.policy == CatchUpPolicy::None {
        return Err("is caught up though nothing is to be".to_owned());
    }
    let decided = run.log.first().map_or(run.nominal, |first| first.at);
    if run.nominal.plus(schedule.spec.jitter).plus(wanted.within) < decided {
        return Err(format!("is caught up {} late, and {} is wanted", decided.since(run.nominal), wanted.within));
    }
    let is_only_one = matches!(schedule.spec.timing, cronhold_schedule::Timing::After { .. });
    let Some(backlog) = model.backlogs.get(&(run.job.clone(), id.clone())) else {
        return if is_only_one { Ok(()) } else { Err("is caught up and was in no backlog".to_owned()) };
    };
    // A schedule that counts from the previous run may have been another before, with a backlog that is still worked on.
    if !backlog.holds(run.nominal) && !is_only_one {
        return Err("is caught up and was not in the backlog".to_owned());
    }
    let newest = backlog.later.last().map_or(backlog.to, |last| last.to);
    // A job that was changed may have a backlog from when it wanted all of it.
    let was_always_so = job.revision == 1;
    if was_always_so && wanted.policy == CatchUpPolicy::Last && run.nominal != newest {
        return Err("is caught up and is not the last of its outage".to_owned());
    }
    Ok(())
}

/// Whose a unit is. The number of the writer stands in the higher bits of a version.
fn writer(unit: &Unit) -> u64 {
    unit.version.bits() >> 40
}

//! The state of a job agrees with its runs: runs with a program and pending retries are active, waiting runs are
//! queued, and no other runs are in either list.

use std::collections::BTreeSet;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{JobState, Record};
use cronhold_core::{JobId, RunId, State};
use cronhold_store::{Unit, UnitReceipt};

use super::{CheckResult, CheckerContext, InvariantChecker, runs};
use crate::store_model::{StoreModel, name};

/// Compares the job states that a unit changed.
#[derive(Debug, Default)]
pub(super) struct JobStateChecker;

impl InvariantChecker for JobStateChecker {
    fn name(&self) -> &'static str {
        "job states agree with runs"
    }

    fn after(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit, _: &UnitReceipt) -> CheckResult {
        let states = unit.changes.iter().filter_map(|change| match change {
            RecordChange::Put(Record::JobState(state)) => Some(state.job.clone()),
            _ => None,
        });
        let jobs: BTreeSet<JobId> = states.chain(runs(unit).map(|run| run.job.clone())).collect();
        jobs.iter().try_for_each(|job| agrees(model, job))
    }
}

fn agrees(model: &StoreModel, job: &JobId) -> CheckResult {
    let Some(state) = model.states.get(job) else {
        return match model.unfinished(job).next() {
            Some(run) => Err(format!("{} is {} and its job has no state", name(run), run.state)),
            None => Ok(()),
        };
    };
    for run in model.unfinished(job) {
        let is_active = state.is_active(run.id);
        let may_be_active = run.state.has_program() || run.retry_of.is_some();
        if run.state.has_program() && !is_active {
            return Err(format!("{} is {} and not counted as active", name(run), run.state));
        }
        if is_active && !may_be_active {
            return Err(format!("{} is {} and counted as active", name(run), run.state));
        }
        if (run.state == State::Waiting) != state.is_queued(run.id) {
            return Err(format!("{} is {} and the queue disagrees", name(run), run.state));
        }
    }
    match listed(state).find(|id| model.runs.get(id).is_none_or(|run| run.state.is_finished())) {
        Some(id) => Err(format!("{job} still counts run {id}, which is finished or does not exist")),
        None => Ok(()),
    }
}

fn listed(state: &JobState) -> impl Iterator<Item = RunId> {
    state.active.iter().map(|active| active.run).chain(state.queued())
}

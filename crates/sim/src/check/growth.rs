//! Nothing grows without a bound: long after everything came to rest, each job has no more finished runs than it retains,
//! or than the store keeps, and a margin, and nothing is left of removed jobs. Runs are kept until their actions are done, and then until the next
//! walk deletes them.

use std::collections::BTreeMap;

use cronhold_core::decision::RecordChange;
use cronhold_core::policy::retention::with_margin;
use cronhold_core::record::Record;
use cronhold_core::{JobId, RunId, State};
use cronhold_schedule::Span;
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker};

/// Nodes walk through everything that can expire every ten minutes, and a walk takes some steps of a second.
const WALK_WITHIN: Span = Span::from_secs(720);

/// Counts the records at the end.
#[derive(Debug, Default)]
pub(super) struct GrowthChecker {
    /// When the last action of a run was done.
    runs_done: BTreeMap<RunId, Span>,
    /// When the last action of a job's runs was done.
    jobs_done: BTreeMap<JobId, Span>,
}

impl InvariantChecker for GrowthChecker {
    fn name(&self) -> &'static str {
        "nothing grows without a bound"
    }

    fn before(&mut self, CheckerContext { at, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for change in &unit.changes {
            if let RecordChange::Put(Record::Action(action)) = change
                && !action.is_pending()
            {
                self.runs_done.insert(action.id.run, at);
                self.jobs_done.insert(action.job.clone(), at);
            }
        }
        Ok(())
    }

    fn aged(&mut self, CheckerContext { model, at, kept_max, .. }: CheckerContext<'_>) -> CheckResult {
        if let Some(action) = model.actions.keys().find(|action| model.gone.contains(&action.run)) {
            return Err(format!("action {action} is still there, and its run is not"));
        }
        // A run of a job that does not exist cannot be created, so the action waits for a day, and its run with it.
        let pending = || model.actions.values().filter(|action| action.is_pending());
        // The walk after the one that deletes the last run deletes the state.
        let is_recent =
            |job: &JobId| self.jobs_done.get(job).is_some_and(|done| at.minus(*done) <= WALK_WITHIN.plus(WALK_WITHIN));
        let waits = |job: &JobId| is_recent(job) || pending().any(|action| action.job == *job);
        if let Some(job) = model.states.keys().find(|job| !model.jobs.contains_key(*job) && !waits(job)) {
            return Err(format!("the state of {job} is still there, and the job is not"));
        }
        if let Some((job, _)) = model.identities.keys().find(|(job, _)| !model.jobs.contains_key(job)) {
            return Err(format!("outcomes of {job} are still there, and the job is not"));
        }
        let is_awaited = |id: &RunId| self.runs_done.get(id).is_some_and(|done| at.minus(*done) <= WALK_WITHIN);
        let is_kept = |id: &RunId| is_awaited(id) || pending().any(|action| action.id.run == *id);
        let is_there = |id: &RunId| !model.gone.contains(id) && !is_kept(id);
        let runs = model.runs.values().filter(|run| is_there(&run.id)).map(|run| (&run.job, run.state));
        let spans = model.spans.values().filter(|span| is_there(&span.id)).map(|span| (&span.job, State::Skipped));
        let mut counts: BTreeMap<(&JobId, State), u32> = BTreeMap::new();
        for kind in runs.chain(spans).filter(|(_, state)| state.is_finished()) {
            *counts.entry(kind).or_default() += 1;
        }
        for ((job, state), count) in counts {
            let Some(record) = model.jobs.get(job) else {
                return Err(format!("{count} runs of {job} are still there, and the job is not"));
            };
            let retain = &record.job.retain;
            let retained = match state {
                State::Success => retain.success,
                State::Failure => retain.failure,
                State::Error => retain.error,
                _ => retain.skipped,
            };
            let limit = retained.min(kept_max.unwrap_or(u32::MAX));
            if count > with_margin(limit) {
                return Err(format!("{job} keeps {count} runs in {state}, and may keep {limit}"));
            }
        }
        Ok(())
    }
}

//! A run starts only if its conditions hold, unless an operator starts it. Outcomes that conditions read are those of
//! runs: the latest outcome of a job with certain args is a run that ended so, or was marked so.

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{LatestOutcomes, Record, RecordKey};
use cronhold_core::{Args, JobId, State};
use cronhold_store::Unit;

use super::condition_oracle::ConditionOracle;
use super::{CheckResult, CheckerContext, InvariantChecker, is_started_explicitly, runs, spans, starting};
use crate::store_model::{StoreModel, name};

/// Compares starts with conditions, and outcomes with runs.
#[derive(Debug, Default)]
pub(super) struct ConditionChecker;

impl InvariantChecker for ConditionChecker {
    fn name(&self) -> &'static str {
        "runs start only if their conditions hold"
    }

    fn before(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in starting(model, unit).filter(|run| !is_started_explicitly(run)) {
            let Some(job) = model.jobs.get(&run.job).filter(|job| !job.job.conditions.is_empty()) else { continue };
            // The decision has seen what the unit itself changes; the model has not.
            if changes_outcomes(model, unit) || runs(unit).any(|other| other.id != run.id) {
                continue;
            }
            let now = run.entered(State::Starting).expect("it starts");
            if !(ConditionOracle { model, run, job, now }).holds() {
                let conditions = &job.job.conditions;
                return Err(format!("{} starts although its conditions do not hold: {conditions:?}", name(run)));
            }
        }
        for change in &unit.changes {
            match change {
                RecordChange::Put(Record::Identity(identity)) => {
                    check_outcomes(model, unit, &identity.job, &identity.args, identity.outcomes)?;
                }
                RecordChange::Put(Record::JobState(state)) => {
                    check_outcomes(model, unit, &state.job, &Args::default(), state.outcomes.unwrap_or_default())?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether a unit changes the outcomes that conditions see.
fn changes_outcomes(model: &StoreModel, unit: &Unit) -> bool {
    unit.changes.iter().any(|change| match change {
        RecordChange::Put(Record::JobState(state)) => {
            let before = model.states.get(&state.job).and_then(|before| before.outcomes);
            before.unwrap_or_default() != state.outcomes.unwrap_or_default()
        }
        change => matches!(change.key(), RecordKey::Identity(..)),
    })
}

/// Every outcome names a run or a span of skips with that state and these args.
fn check_outcomes(model: &StoreModel, unit: &Unit, job: &JobId, args: &Args, outcomes: LatestOutcomes) -> CheckResult {
    for state in [State::Success, State::Failure, State::Error, State::Skipped] {
        let Some(outcome) = outcomes.of(state) else { continue };
        let written = runs(unit).find(|run| run.id == outcome.run);
        let run = written.or_else(|| model.runs.get(&outcome.run).map(|run| &**run));
        let is_run = run.is_some_and(|run| run.state == state && run.args == *args && run.job == *job);
        let is_span = spans(unit).any(|span| span.id == outcome.run) || model.spans.contains_key(&outcome.run);
        if !(is_run || is_span && state == State::Skipped) {
            return Err(format!("the outcome {state} of {job} names {}, which did not end so", outcome.run));
        }
    }
    Ok(())
}

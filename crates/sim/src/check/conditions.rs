//! A run starts only if its conditions hold, unless an operator starts it. Outcomes that conditions read are those of
//! runs: the latest outcome of a job with certain args is a run that ended so, or was marked so.

use cronhold_core::State;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{Identity, Record, RecordKey};
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
            let changes_outcomes = unit.changes.iter().any(|change| matches!(change.key(), RecordKey::Identity(..)));
            if changes_outcomes || runs(unit).any(|other| other.id != run.id) {
                continue;
            }
            let now = run.entered(State::Starting).expect("it starts");
            if !(ConditionOracle { model, run, job, now }).holds() {
                let conditions = &job.job.conditions;
                return Err(format!("{} starts although its conditions do not hold: {conditions:?}", name(run)));
            }
        }
        for change in &unit.changes {
            if let RecordChange::Put(Record::Identity(identity)) = change {
                check_outcomes(model, unit, identity)?;
            }
        }
        Ok(())
    }
}

/// Every outcome names a run or a span of skips with that state and these args.
fn check_outcomes(model: &StoreModel, unit: &Unit, identity: &Identity) -> CheckResult {
    for state in [State::Success, State::Failure, State::Error, State::Skipped] {
        let Some(outcome) = identity.outcome(state) else { continue };
        let written = runs(unit).find(|run| run.id == outcome.run);
        let run = written.or_else(|| model.runs.get(&outcome.run).map(|run| &**run));
        let is_run = run.is_some_and(|run| run.state == state && run.args == identity.args && run.job == identity.job);
        let is_span = spans(unit).any(|span| span.id == outcome.run) || model.spans.contains_key(&outcome.run);
        if !(is_run || is_span && state == State::Skipped) {
            return Err(format!("the outcome {state} of {} names {}, which did not end so", identity.job, outcome.run));
        }
    }
    Ok(())
}

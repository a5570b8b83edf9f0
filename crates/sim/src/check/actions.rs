//! No action is lost: the unit of a transition that owes an action writes it, an action is done only if it was received,
//! and at rest every action is done. An action of kind `run` creates exactly one run, in the unit that ends it.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::RunId;
use cronhold_core::decision::RecordChange;
use cronhold_core::job::RunEvent;
use cronhold_core::record::{
    ActionId, ActionRecord, ActionStatus, Actor, LockName, Record, RecordKey, ResolvedAction, Run, TransitionKind,
};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, runs};

/// Tracks what receivers got, and the runs that actions created.
#[derive(Debug, Default)]
pub(super) struct ActionChecker {
    received: BTreeSet<ActionId>,
    created: BTreeMap<RunId, ActionId>,
}

impl InvariantChecker for ActionChecker {
    fn name(&self) -> &'static str {
        "no action is lost"
    }

    fn before(&mut self, context: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in runs(unit) {
            check_transitions(context, unit, run)?;
        }
        for action in actions(unit) {
            self.check_action(context, unit, action)?;
        }
        // The batching policy of a job creates the runs of its triggers.
        let by_action = |run: &&Run| {
            let is_new = !context.model.runs.contains_key(&run.id) && run.triggers.is_empty();
            is_new && run.creator() == Some(&Actor::Action)
        };
        for run in runs(unit).filter(by_action) {
            let makers = actions(unit).filter(|action| action.created_run() == Some(run.id)).count();
            if makers != 1 {
                return Err(format!("run {} of {} is not created by one action", run.id, run.job));
            }
        }
        for change in &unit.changes {
            if let RecordChange::Delete(RecordKey::Run(run)) = change
                && let Some(action) = context.model.actions.values().find(|it| it.id.run == *run && it.is_pending())
            {
                return Err(format!("run {run} is deleted, and its action {} is not done", action.id.number));
            }
        }
        Ok(())
    }

    fn delivered(&mut self, action: ActionId) {
        self.received.insert(action);
    }

    fn at_rest(&mut self, context: CheckerContext<'_>) -> CheckResult {
        match context.model.actions.values().find(|action| is_owed(action)) {
            Some(action) => Err(format!("action {} of {} is not done: {action:?}", action.id, action.job)),
            None => Ok(()),
        }
    }
}

impl ActionChecker {
    fn check_action(&mut self, context: CheckerContext<'_>, unit: &Unit, action: &ActionRecord) -> CheckResult {
        let is_new = !context.model.actions.contains_key(&action.id);
        if is_new && !runs(unit).any(|run| run.id == action.id.run) {
            return Err(format!("action {} is written without a transition", action.id));
        }
        if !matches!(action.status, ActionStatus::Done { .. }) {
            return Ok(());
        }
        if let ResolvedAction::Run { job, trigger: Some(trigger), .. } = &action.work {
            let mark = LockName::of_trigger(job, trigger);
            let is_marked = unit.take.iter().any(|take| take.lock == mark) || context.model.locks.contains_key(&mark);
            return if is_marked { Ok(()) } else { Err(format!("action {} is done without its trigger", action.id)) };
        }
        match action.created_run() {
            Some(run) => {
                // After a rollback the same run may be there already.
                let is_there = context.model.runs.contains_key(&run) || runs(unit).any(|created| created.id == run);
                if !is_there {
                    return Err(format!("action {} is done, and its run does not exist", action.id));
                }
                if *self.created.entry(run).or_insert(action.id) != action.id {
                    return Err(format!("two actions have created run {run}"));
                }
            }
            None if !self.received.contains(&action.id) => {
                return Err(format!("action {} is done, and was never received", action.id));
            }
            None => {}
        }
        Ok(())
    }
}

/// Whether an action should be done at rest. A run of a job that was removed, or has other params, cannot be created.
pub(crate) fn is_owed(action: &ActionRecord) -> bool {
    let is_impossible = matches!(action.work, ResolvedAction::Run { .. }) && action.failures > 0;
    action.is_pending() && !is_impossible
}

/// Checks that the end of a run causes the actions of its job. Decisions that end a run compare its job.
fn check_transitions(context: CheckerContext<'_>, unit: &Unit, run: &Run) -> CheckResult {
    let known = context.model.runs.get(&run.id).map_or(0, |old| old.log.len());
    let Some(job) = context.model.jobs.get(&run.job).filter(|job| job.uid == run.uid) else { return Ok(()) };
    let ends = run.log.iter().skip(known).filter(|entry| entry.kind == TransitionKind::Entered);
    let ends = ends.filter(|entry| entry.state.is_finished() && run.retried_by.is_none());
    let of_event = |event| job.job.on.get(&event).map_or(0, Vec::len);
    let owed: usize = ends.map(|entry| of_event(RunEvent::State(entry.state)) + of_event(RunEvent::Finished)).sum();
    let written = actions(unit).filter(|it| it.id.run == run.id && !context.model.actions.contains_key(&it.id));
    match written.count() {
        written if written < owed => Err(format!(
            "{}#{} is {} and owes {owed} actions, of which {written} are written",
            run.job, run.number, run.state
        )),
        _ => Ok(()),
    }
}

fn actions(unit: &Unit) -> impl Iterator<Item = &ActionRecord> {
    unit.changes.iter().filter_map(|change| match change {
        RecordChange::Put(Record::Action(action)) => Some(&**action),
        _ => None,
    })
}

//! No action is lost: the unit of an event that owes an action writes it, and no other action, an action is done only if it was received,
//! and at rest every action is done. An action of kind `run` creates exactly one run, in the unit that ends it.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::decision::RecordChange;
use cronhold_core::job::{ActionFilter, OutcomeChange, RunEvent};
use cronhold_core::record::{
    ActionId, ActionRecord, ActionStatus, Actor, JobRecord, LockName, OutcomeStreak, Record, RecordKey, ResolvedAction,
    Run, TransitionKind,
};
use cronhold_core::{RunId, State};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, runs, spans};

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
            check_run(context, unit, run)?;
        }
        for span in spans(unit).filter(|span| !context.model.spans.contains_key(&span.id) && span.reason.is_missed()) {
            let Some(job) = context.model.jobs.get(&span.job).filter(|job| job.uid == span.uid) else { continue };
            let owed = job.job.on.get(&RunEvent::Missed).map_or(0, Vec::len);
            let written = written(context, unit, span.id, RunEvent::Missed);
            if written != owed {
                let name = format!("the span {}#{}", span.job, span.number);
                return Err(format!("{name} owes {owed} actions, of which {written} are written"));
            }
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
        let mut events = runs(unit).map(|run| run.id).chain(spans(unit).map(|span| span.id));
        if is_new && !events.any(|id| id == action.id.run) {
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

/// Checks that a run has the actions that its job has for its new entries, and counts its outcome. Decisions that end a
/// run, or note that it is late, compare its job.
fn check_run(context: CheckerContext<'_>, unit: &Unit, run: &Run) -> CheckResult {
    let known = context.model.runs.get(&run.id).map_or(0, |old| old.log.len());
    let Some(job) = context.model.jobs.get(&run.job).filter(|job| job.uid == run.uid) else { return Ok(()) };
    let mut owed: BTreeMap<RunEvent, usize> = BTreeMap::new();
    let streak = streak(context, run);
    let mut outcome = None;
    for entry in run.log.iter().skip(known) {
        let is_end = entry.kind == TransitionKind::Entered && entry.state.is_finished() && run.retried_by.is_none();
        let is_missed = is_end
            && run.reason.as_ref().is_some_and(|reason| reason.is_missed())
            && run.schedule.is_some()
            && run.attempt == 1;
        outcome = Some(entry.state).filter(|_| is_end).or(outcome);
        for (event, happens) in [
            (RunEvent::State(entry.state), is_end),
            (RunEvent::Finished, is_end),
            (RunEvent::Missed, is_missed),
            (RunEvent::Late, entry.kind == TransitionKind::Late),
        ] {
            if happens {
                *owed.entry(event).or_default() += owed_for(job, event, streak, entry.state);
            }
        }
    }
    for (event, owed) in owed {
        let written = written(context, unit, run.id, event);
        if written != owed {
            let name = format!("{}#{} is {}", run.job, run.number, run.state);
            return Err(format!("{name} and owes {owed} actions for {event}, of which {written} are written"));
        }
    }
    match outcome {
        // Only actions read how outcomes follow each other.
        Some(outcome) if !job.job.on.is_empty() => check_streak(unit, run, streak, outcome),
        _ => Ok(()),
    }
}

/// Checks that an outcome is counted among those with the same args.
fn check_streak(unit: &Unit, run: &Run, before: Option<OutcomeStreak>, outcome: State) -> CheckResult {
    let is_other = |other: &&Run| other.id != run.id && other.state.is_finished();
    if outcome == State::Skipped || runs(unit).any(|other| is_other(&other) && other.args == run.args) {
        return Ok(());
    }
    let counted = unit.changes.iter().find_map(|change| match change {
        RecordChange::Put(Record::Identity(it)) if it.job == run.job && it.args == run.args => Some(it.outcomes),
        RecordChange::Put(Record::JobState(it)) if it.job == run.job && run.args.is_empty() => it.outcomes,
        _ => None,
    });
    let count = |it: Option<OutcomeStreak>| it.map_or((0, 0, 0), |it| (it.successes, it.failures, it.errors));
    let (successes, failures, errors) = count(before);
    let expected = match outcome {
        State::Success => (successes + 1, 0, 0),
        State::Failure => (0, failures + 1, errors),
        _ => (0, failures, errors + 1),
    };
    let streak = counted.and_then(|outcomes| outcomes.streak);
    match streak.is_some_and(|streak| streak.last == outcome) && count(streak) == expected {
        true => Ok(()),
        false => Err(format!("{}#{} is {outcome} after {before:?}, counted as {streak:?}", run.job, run.number)),
    }
}

/// The outcomes before a run, of runs with the same args.
fn streak(context: CheckerContext<'_>, run: &Run) -> Option<OutcomeStreak> {
    let state = context.model.states.get(&run.job).and_then(|state| state.outcomes).filter(|_| run.args.is_empty());
    let identity = || context.model.identities.get(&(run.job.clone(), run.args.clone())).map(|it| it.outcomes);
    state.or_else(identity)?.streak
}

/// How many actions a job has for an event of a run, whose outcomes before are `streak`.
fn owed_for(job: &JobRecord, event: RunEvent, streak: Option<OutcomeStreak>, state: State) -> usize {
    let rules = job.job.on.get(&event).into_iter().flatten();
    rules.filter(|rule| rule.when.as_ref().is_none_or(|filter| fits(filter, event, streak, state))).count()
}

/// Whether an outcome fits a filter. The filters of a simulation have neither args nor labels.
fn fits(filter: &ActionFilter, event: RunEvent, streak: Option<OutcomeStreak>, state: State) -> bool {
    let nothing = OutcomeStreak { last: State::Success, successes: 0, failures: 0, errors: 0 };
    let before = streak.unwrap_or(nothing);
    let bad = before.failures + before.errors;
    let in_a_row = match (event, state) {
        (_, State::Success) => before.successes + 1,
        (RunEvent::State(State::Failure), State::Failure) => before.failures + 1,
        (RunEvent::State(State::Error), State::Error) => before.errors + 1,
        (_, State::Failure | State::Error) => bad + 1,
        _ => return false,
    };
    match filter.outcome {
        Some(OutcomeChange::Changed) => before.last != state,
        Some(OutcomeChange::Recovered) => state == State::Success && bad > 0 && bad >= filter.in_a_row.unwrap_or(0),
        None => filter.in_a_row == Some(in_a_row),
    }
}

/// The number of actions that a unit adds for an event of a run or a span.
fn written(context: CheckerContext<'_>, unit: &Unit, run: RunId, event: RunEvent) -> usize {
    let is_new = |it: &&ActionRecord| !context.model.actions.contains_key(&it.id);
    actions(unit).filter(|it| it.id.run == run && it.event == event).filter(is_new).count()
}

fn actions(unit: &Unit) -> impl Iterator<Item = &ActionRecord> {
    unit.changes.iter().filter_map(|change| match change {
        RecordChange::Put(Record::Action(action)) => Some(&**action),
        _ => None,
    })
}

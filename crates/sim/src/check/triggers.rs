//! Every trigger is in one place: pending, or consumed by one run, or dropped and counted. Batches respect the policy of
//! their job: runs at the same time, equal args, and pauses. A set changes only by the triggers that its counts say.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::decision::RecordChange;
use cronhold_core::job::{Batching, LockPolicy, OverlapPolicy};
use cronhold_core::record::{
    Actor, JobRecord, JobState, PendingTrigger, Record, RecordKey, Run, TriggerId, TriggerSet,
};
use cronhold_core::{JobId, RunId};
use cronhold_store::{Unit, UnitReceipt};

use super::{CheckResult, CheckerContext, InvariantChecker, runs};
use crate::store_model::{StoreModel, name};

/// Tracks which triggers were received, and the runs that stand for them.
#[derive(Debug, Default)]
pub(super) struct TriggerChecker {
    /// Triggers that were received, pending ones included.
    received: BTreeSet<(JobId, TriggerId)>,
    consumed: BTreeMap<(JobId, TriggerId), RunId>,
}

impl InvariantChecker for TriggerChecker {
    fn name(&self) -> &'static str {
        "every trigger is pending, consumed once, or dropped"
    }

    fn before(&mut self, context: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in consumers(context.model, unit) {
            self.check_run(context, unit, run)?;
        }
        for change in &unit.changes {
            match change {
                RecordChange::Put(Record::Triggers(set)) => self.check_set(context.model, unit, set)?,
                RecordChange::Delete(RecordKey::Triggers(job)) => check_deletion(context.model, unit, job)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn after(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit, _: &UnitReceipt) -> CheckResult {
        for change in &unit.changes {
            let (Some(job), RecordKey::Triggers(_) | RecordKey::JobState(_)) =
                (change.key().job().cloned(), change.key())
            else {
                continue;
            };
            let is_known = model.states.get(&job).is_some_and(|state| state.has_triggers);
            let is_pending = model.triggers.get(&job).is_some_and(|set| !set.pending.is_empty());
            if is_known != is_pending {
                return Err(format!(
                    "the state of {job} says {is_known} about pending triggers, and its set {is_pending}"
                ));
            }
        }
        Ok(())
    }

    fn at_rest(&mut self, CheckerContext { model, .. }: CheckerContext<'_>) -> CheckResult {
        match model.triggers.values().find(|set| model.may_batch(set)) {
            Some(set) => Err(format!("{} triggers of {} are left: {set:?}", set.pending.len(), set.job)),
            None => Ok(()),
        }
    }
}

impl TriggerChecker {
    /// Checks a new run that stands for triggers.
    fn check_run(&mut self, context: CheckerContext<'_>, unit: &Unit, run: &Run) -> CheckResult {
        let CheckerContext { model, .. } = context;
        for trigger in run.triggers.iter() {
            let key = (run.job.clone(), trigger.id.clone());
            if *self.consumed.entry(key.clone()).or_insert(run.id) != run.id {
                return Err(format!("{} is the second run that stands for the trigger {}", name(run), trigger.id));
            }
            let was_pending = pending(model, &run.job).iter().find(|pending| pending.id == trigger.id);
            if was_pending.is_none() && !self.received.insert(key) {
                return Err(format!("{} stands for the trigger {}, which was not pending", name(run), trigger.id));
            }
            if was_pending.is_some_and(|pending| pending.args != run.args) {
                return Err(format!("{} has other args than the trigger {}", name(run), trigger.id));
            }
        }
        let is_explicit = run.creator().is_some_and(Actor::is_explicit);
        if !is_explicit && run.log.first().is_some_and(|born| model.is_paused(&run.job, born.at)) {
            return Err(format!("{} is created for triggers while its job or everything is paused", name(run)));
        }
        check_concurrency(model, unit, run)
    }

    /// Checks that a set changes by what arrived, what runs consumed, and what was dropped and counted.
    fn check_set(&mut self, model: &StoreModel, unit: &Unit, set: &TriggerSet) -> CheckResult {
        let job = &set.job;
        let none = TriggerSet::new(job.clone());
        let old = model.triggers.get(job).map_or(&none, |set| set);
        let ids = |set: &TriggerSet| set.pending.iter().map(|it| it.id.clone()).collect::<BTreeSet<TriggerId>>();
        let (before, after) = (ids(old), ids(set));
        let consumers = consumers(model, unit).filter(|run| run.job == *job);
        let consumed: BTreeSet<TriggerId> =
            consumers.flat_map(|run| run.triggers.iter().map(|it| it.id.clone())).collect();
        if let Some(id) = after.iter().find(|id| self.consumed.contains_key(&(job.clone(), (*id).clone()))) {
            return Err(format!("the trigger {id} of {job} is pending, and a run stands for it"));
        }
        for id in after.difference(&before) {
            if !self.received.insert((job.clone(), id.clone())) {
                return Err(format!("the trigger {id} of {job} is received a second time"));
            }
        }
        let all: BTreeSet<&TriggerId> = after.iter().chain(&consumed).collect();
        let arrived = all.iter().filter(|id| !before.contains(**id)).count();
        let dropped = before.iter().filter(|id| !all.contains(id)).count();
        let (now, then) = (set.counts, old.counts);
        let changes = [
            ("received", now.received - then.received, arrived),
            ("consumed", now.consumed - then.consumed, consumed.len()),
            ("dropped", now.expired + now.removed - then.expired - then.removed, dropped),
        ];
        if let Some((what, counted, count)) = changes.iter().find(|(_, counted, count)| *counted != *count as u64) {
            return Err(format!("{count} triggers of {job} were {what}, and {counted} were counted"));
        }
        let gone = now.consumed + now.expired + now.removed;
        if now.received != gone + set.pending.len() as u64 || set.due.is_some() == set.pending.is_empty() {
            return Err(format!("the set of {job} contradicts itself: {set:?}"));
        }
        Ok(())
    }
}

/// A set goes with its job. Otherwise none of its triggers may be pending.
fn check_deletion(model: &StoreModel, unit: &Unit, job: &JobId) -> CheckResult {
    let is_job_gone = unit.changes.contains(&RecordChange::Delete(RecordKey::Job(job.clone())));
    let taken: BTreeSet<&TriggerId> =
        consumers(model, unit).flat_map(|run| run.triggers.iter().map(|trigger| &trigger.id)).collect();
    let is_lost = |trigger: &&PendingTrigger| !taken.contains(&trigger.id);
    match pending(model, job).iter().find(is_lost).filter(|_| !is_job_gone && model.jobs.contains_key(job)) {
        Some(trigger) => Err(format!("the trigger {} of {job} is lost with its set", trigger.id)),
        None => Ok(()),
    }
}

/// Checks that a batch does not make more runs than its policy allows at the same time.
fn check_concurrency(model: &StoreModel, unit: &Unit, run: &Run) -> CheckResult {
    let is_batch = unit.changes.iter().any(|change| change.key() == RecordKey::Triggers(run.job.clone()));
    let Some(job) = model.jobs.get(&run.job).filter(|job| is_batch && !job.job.nodes.is_each()) else { return Ok(()) };
    let limit = limit(job);
    let none = JobState::new(run.job.clone());
    let state = model.states.get(&run.job).map_or(&none, |state| state);
    let before = state.active.iter().map(|active| active.run).chain(state.queued());
    let created = consumers(model, unit).filter(|other| other.job == run.job).map(|run| run.id);
    let unfinished: BTreeSet<RunId> = before.chain(created).collect();
    match unfinished.len() {
        count if count <= limit => Ok(()),
        count => Err(format!("{} is created for triggers beside others: {count} of {limit}", name(run))),
    }
}

fn limit(job: &JobRecord) -> usize {
    let wanted = job.job.batching.map_or(u32::MAX, Batching::concurrent);
    let is_alone = job.job.overlap != OverlapPolicy::Allow || job.job.lock != LockPolicy::None;
    let most = if is_alone { 1 } else { JobState::ACTIVE_MAX };
    usize::try_from(wanted).unwrap_or(usize::MAX).min(most)
}

fn pending<'a>(model: &'a StoreModel, job: &JobId) -> &'a [PendingTrigger] {
    model.triggers.get(job).map_or(&[], |set| &set.pending)
}

/// The new runs of a unit that stand for triggers. Retries and reruns stand for those of an earlier run.
fn consumers<'a>(model: &'a StoreModel, unit: &'a Unit) -> impl Iterator<Item = &'a Run> {
    let is_first = |run: &Run| run.retry_of.is_none() && run.rerun_of.is_none() && !model.runs.contains_key(&run.id);
    runs(unit).filter(move |run| !run.triggers.is_empty() && is_first(run))
}

//! Turns the pending triggers of a job into runs, by the job's batching policy. One unit creates the runs, removes the
//! triggers that they stand for, and records why it decided so. It is decided again when the state of the job or its
//! definition changes, when triggers become too old, and after [`WAIT_POLL`] in case a notification was lost.
//!
//! A batch starts beside other runs only as far as the job's overlap policy lets runs start together: with any policy but
//! `allow`, and with a lock, pending triggers wait until all runs of the job have ended. A run that was created for
//! triggers waits for its lock and is never skipped or replaced by them, because its triggers would be lost.

use std::collections::BTreeSet;

use cronhold_schedule::Instant;

use super::admission;
use super::draft::UnitDraft;
use super::placement;
use super::run_lifecycle::{self, NewRun, WAIT_POLL};
use crate::args::Args;
use crate::decision::{CommandReply, DecidedUnit, Effect};
use crate::ids::{JobId, RunId, RunNumber};
use crate::job::{Batching, LockPolicy, OverlapPolicy};
use crate::policy::batching::{Arrival, divide, expiry};
use crate::policy::overlap::Admission;
use crate::record::{
    Actor, JobRecord, JobState, PendingTrigger, RecordKey, Run, RunTrigger, TriggerId, TriggerOutcome, TriggerSet,
};
use crate::run::State;
use crate::view::{DecisionView, Halt};

/// Runs that one unit creates at most. If more are allowed, another unit follows at once.
const RUNS_MAX: usize = 10;

/// What was decided about pending triggers.
pub(super) struct BatchedRuns {
    /// The runs that were created.
    runs: Vec<Run>,
    /// Why the triggers that are left wait; `None` if none are left, or if they go on at once.
    pub(super) waits_for: Option<TriggerOutcome>,
    /// When the set has to be checked next.
    pub(super) next_check: Option<Instant>,
}

impl BatchedRuns {
    /// The run that stands for a trigger.
    pub(super) fn run_of(&self, id: &TriggerId) -> Option<(RunId, RunNumber)> {
        let stands_for = |run: &&Run| run.triggers.iter().any(|trigger| trigger.id == *id);
        self.runs.iter().find(stands_for).map(|run| (run.id, run.number))
    }
}

/// Creates the runs that the policy allows now, and drops triggers that have become too old.
pub(super) fn decide(view: &DecisionView<'_>, id: &JobId) -> Result<DecidedUnit, Halt> {
    let mut draft = UnitDraft::new(view);
    let (job, before, stored) = (view.job(id), draft.job_state(id), view.triggers(id));
    view.prefetch([RecordKey::Pause]);
    view.require_loaded()?;
    let Some(job) = job else { return forget(draft, before) };
    let (mut set, mut state) = ((*stored).clone(), before.clone());
    let batched = create_runs(&mut draft, &mut set, &mut state, &job)?;
    if let Some(outcome) = batched.waits_for.filter(|outcome| !set.repeats(outcome)) {
        set.record_decision(outcome, draft.at());
    }
    if set == *stored && state == before && !needs_writing(view, &job, &set, &state) {
        let again = |due: Instant| if due > draft.at() { due } else { draft.at().plus(WAIT_POLL) };
        draft.emit(Effect::PlanBatch { job: id.clone(), at: set.due.map(again).into() });
        return draft.finish(CommandReply::Unchanged);
    }
    set.due = batched.next_check;
    put(&mut draft, &job, set, &mut state);
    if state != before {
        draft.put_state(state);
    }
    draft.finish(CommandReply::Done)
}

/// Whether a set about which nothing new was decided has to be written: its due time has passed, or it contradicts the
/// state of the job, because the store has lost writes. A node that may not run the job leaves the due time as it is: by
/// it, another node finds the triggers.
fn needs_writing(view: &DecisionView<'_>, job: &JobRecord, set: &TriggerSet, state: &JobState) -> bool {
    let is_empty = set.pending.is_empty();
    let is_overdue = set.due.is_some_and(|due| due <= view.stamp.at) && placement::may_batch(view, job);
    is_overdue || state.has_triggers == is_empty || set.due.is_none() != is_empty
}

/// Removes the triggers of a job that is gone. Its removal does that too, unless the store has lost a part of it.
fn forget(mut draft: UnitDraft<'_>, mut state: JobState) -> Result<DecidedUnit, Halt> {
    let key = RecordKey::Triggers(state.job.clone());
    let is_stored = draft.view.stored(&key).is_some();
    if is_stored {
        draft.delete(key);
    }
    if std::mem::take(&mut state.has_triggers) {
        draft.put_state(state);
    } else if !is_stored {
        return draft.finish(CommandReply::Unchanged);
    }
    draft.finish(CommandReply::Done)
}

/// Writes a set and whether it has triggers. A job without a policy has no set, as soon as none is pending.
pub(super) fn put(draft: &mut UnitDraft<'_>, job: &JobRecord, set: TriggerSet, state: &mut JobState) {
    let key = RecordKey::Triggers(set.job.clone());
    if job.job.batching_policy().is_some() || !set.pending.is_empty() {
        return draft.put_triggers(set, state);
    }
    state.has_triggers = false;
    if draft.view.stored(&key).is_some() {
        draft.delete(key);
    }
}

/// Creates the runs that the policy allows now, and removes from the set the triggers that they stand for and those that
/// have become too old.
pub(super) fn create_runs(
    draft: &mut UnitDraft<'_>,
    set: &mut TriggerSet,
    state: &mut JobState,
    job: &JobRecord,
) -> Result<BatchedRuns, Halt> {
    let (view, now, policy) = (draft.view, draft.at(), policy_of(job));
    drop_expired(set, policy, now);
    let is_paused = state.pauses.is_paused_at(now) || view.pauses().is_paused_at(now);
    // What a person or an event requested passes a pause.
    let may_pass = |trigger: &&PendingTrigger| !is_paused || trigger.by.is_explicit();
    let candidates: Vec<PendingTrigger> = set.pending.iter().filter(may_pass).cloned().collect();
    let arrivals: Vec<Arrival<&Args>> = candidates.iter().map(|trigger| (trigger.at, &trigger.args)).collect();
    let active = count_unfinished(view, state, job);
    let may_start = placement::may_batch(view, job);
    let batches = if may_start { divide(policy, active, &arrivals, now).runs } else { Vec::new() };
    let mut runs = Vec::new();
    for batch in batches.iter().take(RUNS_MAX) {
        let triggers: Vec<PendingTrigger> = batch.iter().map(|at| candidates[*at].clone()).collect();
        let run = create_run(draft, state, job, triggers)?;
        let taken: BTreeSet<&TriggerId> = run.triggers.iter().map(|trigger| &trigger.id).collect();
        set.pending.retain(|trigger| !taken.contains(&trigger.id));
        let triggers = u32::try_from(run.triggers.len()).expect("their number is bounded");
        set.counts.consumed += u64::from(triggers);
        set.record_decision(TriggerOutcome::Run { run: run.id, number: run.number, triggers }, now);
        runs.push(run);
    }
    // A run that ended at once has left its place to the next batch.
    let goes_on = batches.len() > RUNS_MAX || runs.iter().any(|run| run.state.is_finished());
    let waits_for = match set.pending.is_empty() {
        _ if goes_on => None,
        true => None,
        false if !set.pending.iter().any(|trigger| may_pass(&trigger)) => Some(TriggerOutcome::Paused),
        false if !may_start => Some(TriggerOutcome::NoNode),
        false => {
            let active = count_unfinished(view, state, job);
            Some(TriggerOutcome::Busy { active, limit: policy.concurrent() })
        }
    };
    let arrivals: Vec<Arrival<()>> = set.pending.iter().map(|trigger| (trigger.at, ())).collect();
    let next_check = match (set.pending.is_empty(), &waits_for) {
        (true, _) => None,
        (false, None | Some(TriggerOutcome::NoNode)) => Some(now),
        (false, Some(_)) => [Some(now.plus(WAIT_POLL)), expiry(policy, &arrivals)].into_iter().flatten().min(),
    };
    Ok(BatchedRuns { runs, waits_for, next_check })
}

/// Drops triggers that have become too old.
fn drop_expired(set: &mut TriggerSet, policy: Batching, now: Instant) {
    let arrivals: Vec<Arrival<()>> = set.pending.iter().map(|trigger| (trigger.at, ())).collect();
    let expired = divide(policy, u32::MAX, &arrivals, now).expired;
    if expired > 0 {
        set.pending.drain(..expired);
        let triggers = u32::try_from(expired).expect("their number is bounded");
        set.counts.expired += u64::from(triggers);
        set.record_decision(TriggerOutcome::Expired { triggers }, now);
    }
}

/// The policy of a job, with as many runs at the same time as its overlap policy and its lock allow. One unit cannot give
/// a lock to two runs either.
fn policy_of(job: &JobRecord) -> Batching {
    let together = match (job.job.overlap, &job.job.lock) {
        (OverlapPolicy::Allow, LockPolicy::None) => u32::try_from(JobState::ACTIVE_MAX).expect("it is small"),
        _ => 1,
    };
    job.job.batching_policy().unwrap_or(Batching::SINGLY).limited(together)
}

/// The runs that are active or wait to start, as far as they can overlap with a run that this node creates.
fn count_unfinished(view: &DecisionView<'_>, state: &JobState, job: &JobRecord) -> u32 {
    let target = job.job.nodes.is_each().then_some(view.stamp.owner.node);
    let active = state.active.iter().map(|active| (active.run, active.target));
    let queued = state.queue.iter().map(|queued| (queued.run, queued.target));
    let overlapping = active.chain(queued).filter(|(_, other)| placement::can_overlap(job, *other, target));
    // A retry may be active and in the queue.
    let runs: BTreeSet<RunId> = overlapping.map(|(run, _)| run).collect();
    u32::try_from(runs.len()).unwrap_or(u32::MAX)
}

/// Creates the run of a batch, in the name of its newest trigger. If a person or an event has sent one of them, the run
/// passes a pause, so it is created in that name.
fn create_run(
    draft: &mut UnitDraft<'_>,
    state: &mut JobState,
    job: &JobRecord,
    triggers: Vec<PendingTrigger>,
) -> Result<Run, Halt> {
    let now = draft.at();
    let first = triggers.first().expect("a batch is never empty");
    let explicit = triggers.iter().rev().find(|trigger| trigger.by.is_explicit());
    let actor = explicit.or(triggers.last()).map_or(Actor::Queue, |trigger| trigger.by.clone());
    let id = RunId::from_key(now, &format!("triggers of {} from {}", job.uid, first.id));
    let (args, target) = (first.args.clone(), placement::target_of_request(draft.view, job)?);
    let new_run = NewRun { id, job, schedule: None, nominal: now, args, target, actor };
    let mut run = run_lifecycle::create_run(draft, state, new_run)?;
    run.triggers = triggers.into_iter().map(RunTrigger::from).collect();
    if run.state == State::Waiting {
        let admission = match admission::admission_of(draft, &run, state, job, true) {
            Admission::Start => Admission::Start,
            // Its lock is held. As a skipped run it would lose its triggers.
            Admission::Wait | Admission::Skip(_) | Admission::Replace => Admission::Wait,
        };
        run = run_lifecycle::apply_admission(draft, run, state, job, admission)?;
    }
    draft.put_run(run.clone());
    Ok(run)
}

#[cfg(test)]
mod tests;

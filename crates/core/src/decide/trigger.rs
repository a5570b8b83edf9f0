//! Receives and removes triggers. A trigger takes effect at most once: the unit that receives it takes the mark of its id
//! for 24 hours, and creates its run, or adds it to the pending triggers of a job with a batching policy.

use std::collections::BTreeMap;

use super::batch;
use super::draft::UnitDraft;
use super::placement;
use super::run;
use super::run_lifecycle::{self, NewRun};
use crate::args::Args;
use crate::decision::{CommandReply, DecidedUnit, LockTake, Rejection, TriggerStatus};
use crate::ids::{JobId, RunId};
use crate::policy::retention::KEY_KEPT;
use crate::record::{
    JobRecord, JobState, LockName, PendingTrigger, RecordKey, RunTrigger, TriggerId, TriggerMessage, TriggerOutcome,
    TriggerSet,
};
use crate::template::{BoundValue, Template};
use crate::view::{DecisionView, Halt};

/// A trigger to be received.
pub(super) struct NewTrigger<'a> {
    pub(super) job: &'a JobId,
    /// Args that the trigger names.
    pub(super) args: &'a BTreeMap<String, String>,
    /// Values for params that it does not name; may have others too.
    pub(super) inherited: &'a BTreeMap<String, String>,
    pub(super) id: &'a TriggerId,
    /// The message that it stands for.
    pub(super) message: Option<&'a TriggerMessage>,
    /// The id of its run, if the job has no policy.
    pub(super) run: RunId,
}

/// Receives a trigger. If the job has received its id before, nothing changes, and the reply says what became of it.
pub(super) fn receive(view: &DecisionView<'_>, new: &NewTrigger<'_>) -> Result<DecidedUnit, Halt> {
    let draft = UnitDraft::new(view);
    let mark = LockName::of_trigger(new.job, new.id);
    let (received, job, state) = (view.lock(&mark), view.job(new.job), draft.job_state(new.job));
    // It is read for a job with a policy and for one that had a policy, and the job may not be loaded yet.
    view.prefetch([RecordKey::Triggers(new.job.clone()), RecordKey::Pause]);
    view.require_loaded()?;
    if let Some(received) = received {
        return known(view, new, received.holder);
    }
    let job = job.ok_or_else(|| Rejection::NoJob(new.job.clone()))?;
    let args = match new.message {
        Some(message) => Args::bind(&job.job.params, &args_of_message(view, &job, message)?, new.inherited)?,
        None => Args::bind(&job.job.params, new.args, new.inherited)?,
    };
    let (by, message) = (view.stamp.actor.clone(), new.message.cloned().map(Box::new));
    let trigger = PendingTrigger { id: new.id.clone(), at: view.stamp.at, by, args, message };
    let mut done = match job.job.batching_policy() {
        Some(_) => add(draft, &state, &job, trigger)?,
        None => run_at_once(draft, state, &job, trigger, new.run)?,
    };
    if !matches!(done.answer, CommandReply::Trigger { status: TriggerStatus::Duplicate, .. }) {
        done.take.push(LockTake { lock: mark, holder: new.run, ttl: Some(KEY_KEPT) });
    }
    Ok(done)
}

/// The args that a job has for a message. A message on a channel that the job does not name any more has none.
fn args_of_message(
    view: &DecisionView<'_>,
    job: &JobRecord,
    message: &TriggerMessage,
) -> Result<BTreeMap<String, String>, Rejection> {
    let bytes = message.bytes();
    if bytes > TriggerMessage::BYTES_MAX {
        return Err(Rejection::MessageTooLarge { job: job.id.clone(), bytes });
    }
    let Some(trigger) = job.job.trigger_of(&message.channel) else { return Ok(BTreeMap::new()) };
    let names = view.world.bindings().with("job", job.id.as_str()).with("channel", message.channel.as_str());
    let names = names.with("message", BoundValue::of_json(message.message.value()));
    let bind = |(name, template): (&String, &Template)| match template.bind(&names) {
        Ok(value) => Ok((name.clone(), value)),
        Err(error) => {
            let (job, message) = (job.id.clone(), error.to_string());
            Err(Rejection::TriggerArg { job, name: name.clone(), message })
        }
    };
    trigger.args.iter().map(bind).collect()
}

/// Removes pending triggers: one, or all of them. Their ids stay known, so they have no effect if they are sent again.
pub(super) fn remove(view: &DecisionView<'_>, id: &JobId, trigger: Option<&TriggerId>) -> Result<DecidedUnit, Halt> {
    let mut draft = UnitDraft::new(view);
    let (job, mut state, set) = (view.job(id), draft.job_state(id), view.triggers(id));
    view.require_loaded()?;
    if job.is_none() {
        return Err(Rejection::NoJob(id.clone()).into());
    }
    let mut set = (*set).clone();
    let before = set.pending.len();
    set.pending.retain(|pending| trigger.is_some_and(|wanted| pending.id != *wanted));
    let triggers = u32::try_from(before - set.pending.len()).expect("their number is bounded");
    match trigger {
        Some(wanted) if triggers == 0 => {
            return Err(Rejection::NoTrigger { job: id.clone(), trigger: wanted.clone() }.into());
        }
        None if triggers == 0 => return draft.finish(CommandReply::Removed { triggers }),
        _ => {}
    }
    set.counts.removed += u64::from(triggers);
    set.record_decision(TriggerOutcome::Removed { triggers, by: view.stamp.actor.clone() }, view.stamp.at);
    set.due = set.due.filter(|_| !set.pending.is_empty());
    let before = state.clone();
    // Also for a job without a policy: the set says who removed them.
    draft.put_triggers(set, &mut state);
    if state != before {
        draft.put_state(state);
    }
    draft.finish(CommandReply::Removed { triggers })
}

/// The reply to a trigger that was received before. `first` is the run of the command that received it. A repeated
/// command gets the reply of the first one.
fn known(view: &DecisionView<'_>, new: &NewTrigger<'_>, first: RunId) -> Result<DecidedUnit, Halt> {
    let run = view.run(first).map(|run| (run.id, run.number));
    let is_pending = view.triggers(new.job).is_pending(new.id);
    view.require_loaded()?;
    let status = match first == new.run {
        true if is_pending => TriggerStatus::Pending,
        true => TriggerStatus::Run,
        false => TriggerStatus::Duplicate,
    };
    Ok(DecidedUnit { answer: CommandReply::Trigger { status, run }, ..DecidedUnit::default() })
}

/// Creates the run of a trigger of a job without a policy.
fn run_at_once(
    mut draft: UnitDraft<'_>,
    mut state: JobState,
    job: &JobRecord,
    trigger: PendingTrigger,
    id: RunId,
) -> Result<DecidedUnit, Halt> {
    let (target, nominal) = (placement::target_of_request(draft.view, job)?, draft.at());
    let (args, actor) = (trigger.args.clone(), trigger.by.clone());
    let new_run = NewRun { id, job, schedule: None, nominal, args, target, actor };
    let mut run = run_lifecycle::create_run(&mut draft, &mut state, new_run)?;
    run.triggers = [RunTrigger::from(trigger)].into();
    let run_and_number = (run.id, run.number);
    let mut done = run::release(draft, run, state, job)?;
    done.answer = CommandReply::Trigger { status: TriggerStatus::Run, run: Some(run_and_number) };
    Ok(done)
}

/// Adds a trigger to the pending ones of a job, and creates the runs that the policy allows now.
fn add(
    mut draft: UnitDraft<'_>,
    before: &JobState,
    job: &JobRecord,
    trigger: PendingTrigger,
) -> Result<DecidedUnit, Halt> {
    let mut set: TriggerSet = (*draft.view.triggers(&job.id)).clone();
    let id = trigger.id.clone();
    if set.is_pending(&id) {
        // It has been pending for longer than its mark was kept.
        return draft.finish(CommandReply::Trigger { status: TriggerStatus::Duplicate, run: None });
    }
    if !set.has_room_for(&trigger) {
        return Err(Rejection::TooManyTriggers(job.id.clone()).into());
    }
    set.add(trigger);
    let mut state = before.clone();
    let batched = batch::create_runs(&mut draft, &mut set, &mut state, job)?;
    let run = batched.run_of(&id);
    let status = if run.is_some() { TriggerStatus::Run } else { TriggerStatus::Pending };
    set.due = batched.next_check;
    if let Some(outcome) = batched.waits_for {
        set.record_decision(outcome, draft.at());
    }
    batch::put(&mut draft, job, set, &mut state);
    if state != *before {
        draft.put_state(state);
    }
    draft.finish(CommandReply::Trigger { status, run })
}

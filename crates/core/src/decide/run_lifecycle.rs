//! The steps of a run's life before its end: it is created, admitted, queued, started, skipped or asked to stop. Each
//! function keeps the run, the job's set of runs and the locks consistent.

use std::sync::Arc;

use cronhold_schedule::{Instant, Span};

use super::admission;
use super::bind;
use super::conditions::{self, ConditionResult};
use super::draft::UnitDraft;
use super::finish_run::finish;
use super::late;
use super::placement;
use super::pools;
use super::probes;
use crate::args::Args;
use crate::decision::{Effect, Rejection};
use crate::ids::{NodeId, RunId};
use crate::policy::overlap::Admission;
use crate::record::{
    Actor, Blocker, JobRecord, JobState, LockName, QueuedRun, ResolvedProbe, Run, ScheduleId, Transition,
};
use crate::run::{self, Cause, Operation, Reason, State};
use crate::view::{DecisionView, Halt};

/// The longest time between the commit that starts a run and the launch of its program.
pub const LAUNCH_WITHIN: Span = Span::from_secs(10);
/// Time between SIGKILL and the next check of a run whose program has not ended.
pub const KILL_WAIT: Span = Span::from_secs(10);
/// A waiting run is checked again after this time, in case a notification was lost.
pub const WAIT_POLL: Span = Span::from_secs(60);
/// A run that waits for a lock beside foreign nodes is checked again after this time, because they release locks without
/// a notification.
pub const LOCK_POLL: Span = Span::from_secs(1);

/// How long a run waits, unless one of its blockers ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunWait {
    /// When the run is checked again at the latest.
    pub(super) until: Instant,
    /// What the run waits for.
    pub(super) blockers: Vec<Blocker>,
    /// Checks of the outside that this node has to carry out.
    pub(super) asks: Vec<ResolvedProbe>,
}

impl RunWait {
    /// A wait that asks the outside nothing.
    pub(super) const fn new(until: Instant, blockers: Vec<Blocker>) -> Self {
        Self { until, blockers, asks: Vec::new() }
    }
}

/// What identifies a run that is about to be created.
pub(super) struct NewRun<'a> {
    pub(super) id: RunId,
    pub(super) job: &'a JobRecord,
    pub(super) schedule: Option<&'a ScheduleId>,
    pub(super) nominal: Instant,
    pub(super) args: Args,
    pub(super) target: Option<NodeId>,
    pub(super) actor: Actor,
}

/// Creates a waiting run: takes its number and resolves its program. If the program cannot be resolved, the run ends at
/// once in error.
pub(super) fn create_run(draft: &mut UnitDraft<'_>, state: &mut JobState, new_run: NewRun<'_>) -> Result<Run, Halt> {
    let job = new_run.job;
    let mut run = empty_run(draft, state, new_run);
    match bind::work(job, &run, draft.view.world) {
        Ok(work) => run.work = Some(work),
        Err(error) => run = finish(draft, run, state, Cause::Broke, Some(Reason::Unbound(error.to_string())))?,
    }
    Ok(run)
}

/// Creates a waiting run without a program.
pub(super) fn empty_run(draft: &UnitDraft<'_>, state: &mut JobState, new_run: NewRun<'_>) -> Run {
    let NewRun { id, job, schedule, nominal, args, target, actor } = new_run;
    let terms = bind::terms(job, schedule, nominal, draft.view.world);
    let late_at = late::late_at(&job.job, nominal, draft.at());
    let log = vec![Transition::entered(draft.at(), State::Waiting, actor)];
    let lock = LockName::of(&job.id, &job.job.lock);
    let run = Run::blank(id, state.take_number(), job.id.clone(), job.uid, nominal);
    Run { args, schedule: schedule.cloned(), target, lock, terms, late_at, log, ..run }
}

/// Starts, queues, skips or replaces according to the admission of a waiting run.
pub(super) fn apply_admission(
    draft: &mut UnitDraft<'_>,
    run: Run,
    state: &mut JobState,
    job: &JobRecord,
    admission: Admission,
) -> Result<Run, Halt> {
    // Without a node, nothing is planned here. The run is due at once, so that a watchdog finds it if the notification
    // is lost.
    let again = if draft.view.world.is_node { draft.at().plus(WAIT_POLL) } else { draft.at() };
    match admission {
        // The node that the run is for starts it when it is notified.
        Admission::Start | Admission::Wait if !placement::is_for_this_node(draft.view, &run) => {
            enqueue_if_room(draft, run, state, RunWait::new(again, vec![Blocker::Node]))
        }
        Admission::Start => match conditions::evaluate(draft, &run, state, job) {
            ConditionResult::Open => start_run(draft, run, state, Some(job), Cause::Ready, Actor::Queue),
            ConditionResult::Wait(wait) => enqueue_if_room(draft, run, state, wait),
            ConditionResult::Skip(reason) => skip_run(draft, run, state, reason),
            ConditionResult::Fail(reason) => finish(draft, run, state, Cause::Broke, Some(reason)),
        },
        Admission::Wait => {
            let blockers = admission::blockers_of(draft, &run, state, job);
            enqueue_if_room(draft, run, state, RunWait::new(again, blockers))
        }
        Admission::Skip(reason) => skip_run(draft, run, state, reason),
        Admission::Replace => {
            make_room(draft, &run, state, job)?;
            Ok(enqueue(run, state, RunWait::new(again, vec![Blocker::OtherRuns])))
        }
    }
}

/// Schedules a check of a run that waits for a lock which a foreign node may hold. This writes nothing: the stored due
/// time is the fallback if the node dies before.
pub(super) fn wake_for_foreign_lock(draft: &mut UnitDraft<'_>, run: &Run) {
    if draft.view.world.has_foreign && run.blockers.iter().any(|blocker| matches!(blocker, Blocker::Lock(_))) {
        draft.emit(Effect::Wake { run: run.id, at: draft.at().plus(LOCK_POLL).into() });
    }
}

/// Whether a pause keeps a run from starting. A run that an operator created or started is not held back.
pub(super) fn is_paused(draft: &UnitDraft<'_>, run: &Run, state: &JobState) -> bool {
    let now = draft.at();
    !run.is_by_operator() && (state.pauses.is_paused_at(now) || draft.view.pauses().is_paused_at(now))
}

/// The run that a command names.
pub(super) fn find_run(view: &DecisionView<'_>, id: RunId) -> Result<Arc<Run>, Halt> {
    Ok(view.run(id).ok_or(Rejection::NoRun(id))?)
}

/// Starts a run on this node. The caller has checked that the lock is free; the commit checks it again. Without a job
/// the run joins no pool.
pub(super) fn start_run(
    draft: &mut UnitDraft<'_>,
    mut run: Run,
    state: &mut JobState,
    job: Option<&JobRecord>,
    cause: Cause,
    actor: Actor,
) -> Result<Run, Halt> {
    // If the run did not wait at all, its start has the actor that created it.
    let last = run.log.last().filter(|last| cause == Cause::Ready && last.at == draft.at());
    let actor = last.map_or(actor, |last| last.actor.clone());
    enter_state(&mut run, cause, draft.at(), actor, "")?;
    run.owner = Some(draft.view.stamp.owner);
    run.due = Some(draft.at().plus(LAUNCH_WITHIN));
    // A run that starts after its stop time gets as long as it would have had on time. Otherwise it would be stopped at
    // once, or never.
    let (now, nominal) = (draft.at(), run.nominal);
    let late = |at: Instant| if at > now { at } else { now.plus(at.since(nominal)) };
    run.terms.stop_at = run.terms.stop_at.map(late);
    state.dequeue(run.id);
    state.activate(&run);
    if let Some(job) = job {
        pools::join(draft, &mut run, &job.job);
    }
    if let Some(lock) = &run.lock {
        draft.take_lock(lock.clone(), run.id, run.terms.lease);
    }
    Ok(run)
}

/// Queues a run. A retry goes to the front, before the runs that waited for it.
fn enqueue(mut run: Run, state: &mut JobState, wait: RunWait) -> Run {
    if !state.is_queued(run.id) {
        let place = if state.is_active(run.id) { 0 } else { state.queue.len() };
        state.queue.insert(place, QueuedRun { run: run.id, target: run.target });
    }
    run.due = Some(wait.until);
    run.blockers = wait.blockers;
    run.blockers.truncate(Blocker::MAX);
    run
}

/// Queues a run, or skips it if it is new and the queue is full.
fn enqueue_if_room(draft: &mut UnitDraft<'_>, run: Run, state: &mut JobState, mut wait: RunWait) -> Result<Run, Halt> {
    let is_counted = state.is_queued(run.id) || state.is_active(run.id);
    if is_counted || state.queue.len() < JobState::QUEUE_MAX {
        let asks = std::mem::take(&mut wait.asks);
        let mut run = enqueue(run, state, wait);
        probes::ask(draft, &mut run, asks);
        wake_for_foreign_lock(draft, &run);
        Ok(run)
    } else {
        skip_run(draft, run, state, Reason::QueueFull)
    }
}

/// Ends a run without starting it.
pub(super) fn skip_run(draft: &mut UnitDraft<'_>, run: Run, state: &mut JobState, reason: Reason) -> Result<Run, Halt> {
    finish(draft, run, state, Cause::Withheld, Some(reason))
}

/// Asks a run's program to end: signal, grace period, SIGKILL.
pub(super) fn request_stop(
    draft: &UnitDraft<'_>,
    run: &mut Run,
    cause: Cause,
    reason: Reason,
    actor: Actor,
) -> Result<(), Halt> {
    enter_state(run, cause, draft.at(), actor, &reason.to_string())?;
    run.ending = Some(reason);
    run.due = Some(draft.at().plus(run.terms.grace));
    Ok(())
}

/// Stops or skips all runs that a new run replaces.
fn make_room(draft: &mut UnitDraft<'_>, by: &Run, state: &mut JobState, job: &JobRecord) -> Result<(), Halt> {
    for id in admission::replaceable_runs(by, state, job) {
        let Some(other) = draft.run(id) else {
            state.forget(id);
            continue;
        };
        let mut other = (*other).clone();
        match other.state {
            State::Starting | State::Running => {
                request_stop(draft, &mut other, Cause::Curtailed, Reason::Replaced, Actor::Queue)?;
                draft.put_run(other);
            }
            State::Scheduled | State::Waiting => {
                let other = skip_run(draft, other, state, Reason::Replaced)?;
                draft.put_run(other);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Moves a run to the state that the state table has for `cause`, and logs the transition.
pub(super) fn enter_state(run: &mut Run, cause: Cause, at: Instant, actor: Actor, message: &str) -> Result<(), Halt> {
    if let run::TransitionEffect::Enter(state) = run::next(run.state, cause)? {
        run.state = state;
        run.blockers.clear();
        run.probes.clear();
        run.log.push(Transition::entered(at, state, actor).with_message(message));
    }
    Ok(())
}

/// Whether another holder has the lock that a run needs.
pub(super) fn is_lock_taken(draft: &UnitDraft<'_>, run: &Run) -> bool {
    run.lock.as_ref().and_then(|lock| draft.view.lock(lock)).is_some_and(|held| held.holder != run.id)
}

/// Rejects a start while another holder has the run's lock.
pub(super) fn reject_if_locked(draft: &UnitDraft<'_>, run: &Run) -> Result<(), Halt> {
    let Some(lock) = &run.lock else { return Ok(()) };
    let Some(held) = draft.view.lock(lock).filter(|held| held.holder != run.id) else { return Ok(()) };
    let (lock, holder) = (lock.clone(), held.holder);
    // A foreign holder is known by its token alone, which is of no use to the caller.
    let is_theirs = draft.view.world.has_foreign && draft.run(holder).is_none();
    Err(if is_theirs { Rejection::LockedElsewhere(lock) } else { Rejection::Locked { lock, holder } }.into())
}

/// A start by an operator. It ignores conditions and overlap, never a lock.
pub(super) const BY_START: Cause = Cause::By(Operation::Start);

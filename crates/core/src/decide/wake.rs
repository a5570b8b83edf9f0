//! Checks a run whose time may have come, or that may not be blocked any longer. Timers, ends of other runs, a resume
//! and the watchdog all send this command, as often as they like: a run that is not due does not change.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use cronhold_schedule::Instant;

use super::admission;
use super::draft::UnitDraft;
use super::late;
use super::pause;
use super::placement::{self, Placement};
use super::run_lifecycle::{self, KILL_WAIT, LAUNCH_WITHIN, WAIT_POLL};
use crate::decision::{CommandReply, DecidedUnit, Effect};
use crate::ids::RunId;
use crate::record::{Actor, Blocker, JobRecord, JobState, Run};
use crate::run::{Cause, Reason, State};
use crate::signal::Signal;
use crate::view::{DecisionView, Halt};

pub(super) fn decide(view: &DecisionView<'_>, id: RunId) -> Result<DecidedUnit, Halt> {
    let Some(run) = view.run(id) else { return Ok(unchanged(None)) };
    if late::is_late(&run, view.stamp.at) && (!run.state.has_program() || is_mine(view, &run)) {
        return late::note(view, &run);
    }
    match run.state {
        State::Scheduled | State::Waiting => before_program(view, &run, false),
        // Each node checks its own programs.
        State::Starting | State::Running | State::Stopping if !is_mine(view, &run) => Ok(unchanged(None)),
        State::Starting | State::Running | State::Stopping => with_program(view, &run),
        State::Success | State::Failure | State::Error | State::Skipped => Ok(unchanged(None)),
    }
}

/// Checks a waiting run that has got an answer from the outside. The answer is stored in any case.
pub(super) fn check_answered(view: &DecisionView<'_>, answered: Run) -> Result<DecidedUnit, Halt> {
    before_program(view, &Arc::new(answered), true)
}

/// Checks a run that has not started. `is_changed` says that it is not the stored one, and has to be written.
fn before_program(view: &DecisionView<'_>, run: &Arc<Run>, is_changed: bool) -> Result<DecidedUnit, Halt> {
    let mut draft = UnitDraft::new(view);
    let (job, before) = (view.job(&run.job), draft.job_state(&run.job));
    let is_paused = run_lifecycle::is_paused(&draft, run, &before);
    view.require_loaded()?;
    let mut state = before.clone();
    let Some(job) = job.filter(|job| job.uid == run.uid) else {
        let over = run_lifecycle::skip_run(&mut draft, (**run).clone(), &mut state, Reason::JobRemoved)?;
        return written(draft, over, state, &before);
    };
    let now = view.stamp.at;
    let is_due = run.due.is_none_or(|due| due <= now);
    if run.state == State::Scheduled && !is_due {
        return Ok(unchanged(Some(run)));
    }
    match placement::placement_of(view, run, &job) {
        Placement::Here => {}
        Placement::Elsewhere(at) if is_changed => {
            return written(draft, Run { due: Some(at), ..(**run).clone() }, state, &before);
        }
        Placement::Elsewhere(at) => return Ok(look_again(run, Some(at))),
        Placement::Nowhere => {
            let over = run_lifecycle::skip_run(&mut draft, (**run).clone(), &mut state, Reason::NoEligibleNode)?;
            return written(draft, over, state, &before);
        }
    }
    let after = if is_paused {
        // The end of the pause wakes the run; the due time is the fallback.
        pause::planned_ends(&before, &view.pauses()).into_iter().for_each(|end| draft.emit(end));
        let pause = if before.pauses.is_paused_at(now) { Blocker::JobPause } else { Blocker::GlobalPause };
        let blockers = if run.state == State::Waiting { vec![pause] } else { Vec::new() };
        Run { due: Some(now.plus(WAIT_POLL)), blockers, ..(**run).clone() }
    } else {
        admitted(&mut draft, run, &mut state, &job)?
    };
    // A run that goes on waiting is written only if it was due, or waits for something else now.
    let waits_for_same = after.blockers == run.blockers && after.probes == run.probes;
    let goes_on = after.state == run.state && after.due >= run.due && waits_for_same && state == before;
    if goes_on && !is_due && !is_changed {
        let mut draft = UnitDraft::new(view);
        draft.emit(Effect::Wake { run: run.id, at: run.next_check().into() });
        run_lifecycle::wake_for_foreign_lock(&mut draft, run);
        return draft.finish(CommandReply::Unchanged);
    }
    written(draft, after, state, &before)
}

fn admitted(draft: &mut UnitDraft<'_>, run: &Run, state: &mut JobState, job: &JobRecord) -> Result<Run, Halt> {
    let mut run = run.clone();
    // A run that was created for a later time joins the others now; a retry has counted as active all the time.
    let is_new = run.state == State::Scheduled && !state.is_active(run.id);
    if run.state == State::Scheduled {
        let actor = run.creator().cloned().unwrap_or(Actor::Schedule);
        run_lifecycle::enter_state(&mut run, Cause::Due, draft.at(), actor, "")?;
    }
    let admission = admission::admission_of(draft, &run, state, job, is_new);
    run_lifecycle::apply_admission(draft, run, state, job, admission)
}

/// Checks a run whose program is on this node: the launch was not reported, it takes too long, or it does not end.
fn with_program(view: &DecisionView<'_>, run: &Arc<Run>) -> Result<DecidedUnit, Halt> {
    let now = view.stamp.at;
    if run.due.is_none_or(|due| due > now) {
        return Ok(unchanged(Some(run)));
    }
    let mut draft = UnitDraft::new(view);
    let mut after = (**run).clone();
    match run.state {
        // Nothing is written, because writing a run as `starting` would launch it again.
        State::Starting => {
            draft.emit(Effect::Adopt { run: Arc::clone(run) });
            draft.emit(Effect::Wake { run: run.id, at: now.plus(LAUNCH_WITHIN).into() });
            return draft.finish(CommandReply::Unchanged);
        }
        State::Running if run.ending.is_none() => {
            run_lifecycle::request_stop(&draft, &mut after, Cause::Curtailed, limit(run), Actor::Limit)?;
        }
        // The keeper may not know the program any more, so its state is requested too.
        _ => {
            draft.emit(Effect::Signal { run: run.id, signal: Signal::KILL });
            draft.emit(Effect::Adopt { run: Arc::clone(run) });
            after.due = Some(now.plus(KILL_WAIT));
        }
    }
    draft.put_run(after);
    draft.finish(CommandReply::Done)
}

/// The limit that a program has reached: its stop time or its timeout, whichever came first.
fn limit(run: &Run) -> Reason {
    let timeout = run.terms.timeout.zip(run.entered(State::Running)).map(|(timeout, since)| since.plus(timeout));
    match (run.terms.stop_at, timeout) {
        (Some(stop_at), Some(timeout)) if stop_at <= timeout => Reason::Stopped,
        (Some(_), None) => Reason::Stopped,
        _ => Reason::Timeout,
    }
}

fn is_mine(view: &DecisionView<'_>, run: &Run) -> bool {
    run.owner.is_some_and(|owner| owner.node == view.stamp.owner.node)
}

fn written(mut draft: UnitDraft<'_>, run: Run, state: JobState, before: &JobState) -> Result<DecidedUnit, Halt> {
    draft.put_run(run);
    // Every write of the set wakes the first run in the queue, so it is written only if it has changed.
    if state != *before {
        draft.put_state(state);
    }
    draft.finish(CommandReply::Done)
}

/// Changes nothing. A run that was checked too early is checked again when it is due.
fn unchanged(run: Option<&Run>) -> DecidedUnit {
    match run.filter(|run| run.next_check().is_some()) {
        Some(run) => look_again(run, run.due),
        None => DecidedUnit { answer: CommandReply::Unchanged, ..DecidedUnit::default() },
    }
}

/// Changes nothing. The run is checked again at a time, or earlier to see whether it is late.
fn look_again(run: &Run, at: Option<Instant>) -> DecidedUnit {
    let at = at.into_iter().chain(run.late_at).min();
    DecidedUnit {
        effects: vec![Effect::Wake { run: run.id, at: at.into() }],
        answer: CommandReply::Unchanged,
        ..DecidedUnit::default()
    }
}

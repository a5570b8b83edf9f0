//! Ends a run whose record cannot be read. Nothing else can end it, and it would keep its place among the job's active
//! or waiting runs. A new record replaces the unreadable one. It has what is still known: the job, the nominal time, and
//! whether the run had args.

use super::draft::UnitDraft;
use super::{finish_run, mark, pools, run_lifecycle, skip, stop};
use crate::args::Args;
use crate::decision::{CommandReply, DecidedUnit, Effect, Rejection};
use crate::ids::{JobId, JobUid, RunId};
use crate::record::{JobState, LockName, RecordKey, RecordKind, Run};
use crate::run::{Cause, Operation, Reason, State};
use crate::signal::Signal;
use crate::view::{DecisionView, Halt};

/// The first entry in the log of the new record.
const MESSAGE: &str = "the record of the run could not be read";

pub(super) fn decide(
    view: &DecisionView<'_>,
    job: &JobId,
    id: RunId,
    to: State,
    why: &str,
) -> Result<DecidedUnit, Halt> {
    view.replace_unreadable(&[RecordKind::Run]);
    let (record, known) = (view.job(job), view.run(id));
    let mut draft = UnitDraft::new(view);
    let mut state = draft.job_state(job);
    view.require_loaded()?;
    if let Some(run) = known {
        return write_again(view, &run, to, why);
    }
    let is_counted = state.is_active(id) || state.is_queued(id);
    if !is_counted || !view.is_unreadable(&RecordKey::Run(id)) {
        return Err(Rejection::NoRun(id).into());
    }
    let is_without_args = has_no_args(&state, id);
    let uid = record.as_ref().map_or(JobUid::from_bits(0), |record| record.uid);
    let mut run = Run::blank(id, state.take_number(), job.clone(), uid, id.time());
    enter_final(view, &mut run, to, why)?;
    state.forget(id);
    state.observe_end(&run);
    if let Some(record) = &record {
        if let Some(lock) = LockName::of(job, &record.job.lock) {
            draft.release_lock(lock, id);
        }
        // Those that it has joined if the job has not changed since. The watchdog repairs others.
        pools::leave(&mut draft, id, &record.job.pools());
        run.schedule = finish_run::following_schedule(&draft, id, record);
        finish_run::plan_after(&mut draft, &run, record);
    }
    finish_run::count_finished(&mut draft, &mut state, run.state, record.as_deref().map(|record| &record.job.retain));
    if is_without_args {
        finish_run::record_outcome(&mut draft, &mut state, &run);
    }
    // Another run may start after this commit. If this node still has the program, it must not run beside that.
    draft.emit(Effect::Signal { run: id, signal: Signal::KILL });
    draft.put_run(run);
    draft.put_state(state);
    draft.finish(CommandReply::Done)
}

/// The node that decides still knows the run, or the record was replaced in the meantime. What the run can do next is
/// done, which writes its record again.
fn write_again(view: &DecisionView<'_>, run: &Run, to: State, why: &str) -> Result<DecidedUnit, Halt> {
    match run.state {
        state if state.is_finished() => mark::decide(view, run.id, to, why),
        state if state.has_program() => stop::decide(view, run.id),
        _ => skip::decide(view, run.id, why),
    }
}

/// Enters the state `error`, and then the requested one.
fn enter_final(view: &DecisionView<'_>, run: &mut Run, to: State, why: &str) -> Result<(), Halt> {
    let (at, actor) = (view.stamp.at, &view.stamp.actor);
    let reason = Reason::ByOperator(why.to_owned());
    run_lifecycle::enter_state(run, Cause::Broke, at, actor.clone(), MESSAGE)?;
    if to != run.state {
        let cause = Cause::By(Operation::Mark(to));
        run_lifecycle::enter_state(run, cause, at, actor.clone(), &reason.to_string())?;
    }
    run.reason = Some(reason);
    Ok(())
}

/// Whether a run is known to have no args. Only then its outcome can be recorded.
fn has_no_args(state: &JobState, run: RunId) -> bool {
    let none = Args::new().digest();
    state.active.iter().any(|active| active.run == run && active.args == none)
}

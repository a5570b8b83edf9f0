//! Declares a run lost with its node, or takes it over. The caller has seen no heartbeat of that node for long enough; the commit
//! compares the node's record, so a heartbeat in between keeps the run.

use std::sync::Arc;

use cronhold_schedule::Instant;

use super::draft::UnitDraft;
use super::{placement, report, run_lifecycle};
use crate::decision::{CommandReply, DecidedUnit, Effect};
use crate::ids::RunId;
use crate::policy::lease::stale_after;
use crate::record::{Record, Run, RunOwner, Transition, TransitionKind};
use crate::view::{DecisionView, Halt};

pub(super) fn decide(view: &DecisionView<'_>, id: RunId, beat: Instant) -> Result<DecidedUnit, Halt> {
    let nothing = DecidedUnit { answer: CommandReply::Unchanged, ..DecidedUnit::default() };
    let Some(run) = view.run(id) else { return Ok(nothing) };
    // The node that decides is alive, so its own runs are not lost.
    let is_other = |owner: &RunOwner| run.state.has_program() && owner.node != view.stamp.owner.node;
    let Some(owner) = run.owner.filter(is_other) else { return Ok(nothing) };
    let node = view.node(owner.node);
    if node.is_some_and(|node| node.beat != beat) {
        return Ok(nothing);
    }
    if run.can_move() {
        let waits_for_node = view.stamp.at.since(beat) < stale_after(&run.terms);
        match take_over(view, &run, owner)? {
            Some(unit) => return Ok(unit),
            // Another node may be able to take it over, or its own node may come back.
            None if waits_for_node && run.remote_task().is_some() => return Ok(nothing),
            None => {}
        }
    }
    report::lost(view, &run)
}

/// Continues the program of a run on this node; `None` if this node may not run the job, or another run has the lock.
fn take_over(view: &DecisionView<'_>, run: &Arc<Run>, from: RunOwner) -> Result<Option<DecidedUnit>, Halt> {
    let mut draft = UnitDraft::new(view);
    let job = view.job(&run.job).filter(|job| job.uid == run.uid);
    let is_locked = run_lifecycle::is_lock_taken(&draft, run);
    view.require_loaded()?;
    // The task of a job that was removed goes on, and any node can follow it.
    let is_eligible = match &job {
        Some(job) => placement::may_start(view, run, job),
        None => view.world.is_node && !view.world.is_draining && run.target.is_none(),
    };
    if !is_eligible || is_locked {
        return Ok(None);
    }
    let mut after = (**run).clone();
    after.owner = Some(view.stamp.owner);
    let name = view.node(from.node).map_or_else(|| from.node.to_string(), |node| node.name.clone());
    after.log.push(Transition {
        message: format!("taken over from node {name}, which was lost"),
        kind: TransitionKind::TakenOver,
        ..Transition::entered(draft.at(), run.state, view.stamp.actor.clone())
    });
    if let Some(lock) = &after.lock {
        draft.take_lock(lock.clone(), after.id, after.terms.lease);
    }
    let after = Arc::new(after);
    draft.put(Record::Run(Arc::clone(&after)));
    draft.emit(Effect::Launch { run: after });
    draft.finish(CommandReply::Done).map(Some)
}

#[cfg(test)]
mod tests;

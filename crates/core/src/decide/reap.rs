//! Declares a run lost with its node. The caller has seen no heartbeat of that node for long enough; the commit
//! compares the node's record, so a heartbeat in between keeps the run.

use cronhold_schedule::Instant;

use super::report;
use crate::decision::{CommandReply, DecidedUnit};
use crate::ids::RunId;
use crate::record::RunOwner;
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
    report::lost(view, &run)
}

#[cfg(test)]
mod tests;

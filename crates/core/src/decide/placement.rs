//! Where runs may start. Most may start on any node that has the labels. A job that runs on each node has a run for every
//! one of them, which is the only one that may start it; such runs are in the way of those of the same node alone.
//!
//! Locks are names for all nodes, and so are `max_running` and `after`: a success on any node counts.

use cronhold_schedule::Instant;

use super::run_lifecycle::WAIT_POLL;
use crate::decision::Rejection;
use crate::ids::NodeId;
use crate::job::Nodes;
use crate::policy::catch_up::GRACE;
use crate::policy::overlap::are_in_one_row;
use crate::record::{JobRecord, Run};
use crate::run::State;
use crate::view::View;

/// An occurrence runs on so many nodes at most, so that its claim stays one small unit. Where more could run it, those
/// with the first ids do.
pub const NODES_MAX: usize = 256;

/// The nodes that an occurrence gets a run for, this one first; one run for no node in particular, for most jobs. Nobody,
/// when no node that is there may run it.
pub(super) fn targets_of_occurrence(view: &View<'_>, job: &JobRecord) -> Vec<Option<NodeId>> {
    if !job.job.nodes.is_each() {
        return vec![None];
    }
    let me = view.stamp.owner.node;
    let first = view.world.eligible(me, &job.job.nodes).into_iter().take(NODES_MAX);
    let mut places: Vec<Option<NodeId>> = first.map(Some).collect();
    places.sort_by_key(|place| *place != Some(me));
    places
}

/// Whether this node may claim an occurrence: it may run the job itself, or knows a node that has a run of its own.
pub(super) fn may_claim(view: &View<'_>, nodes: &Nodes, places: &[Option<NodeId>]) -> bool {
    if nodes.is_each() { !places.is_empty() } else { view.world.is_eligible(nodes) }
}

/// The node of a run that someone asks for: the one that was asked, for a job that runs on each.
pub(super) fn target_of_request(view: &View<'_>, job: &JobRecord) -> Result<Option<NodeId>, Rejection> {
    if !job.job.nodes.is_each() {
        return Ok(None);
    }
    reject_ineligible(view, job)?;
    Ok(Some(view.stamp.owner.node))
}

/// The node of a run that someone wants once more: the same, as long as the job runs on each.
pub(super) fn target_of_rerun(view: &View<'_>, job: &JobRecord, old: &Run) -> Result<Option<NodeId>, Rejection> {
    match old.target.filter(|_| job.job.nodes.is_each()) {
        Some(node) => Ok(Some(node)),
        None => target_of_request(view, job),
    }
}

/// Whether two runs of a job can be in each other's way.
pub(super) fn can_overlap(job: &JobRecord, one: Option<NodeId>, other: Option<NodeId>) -> bool {
    are_in_one_row(&job.job.nodes, one, other)
}

/// Whether a run is not another node's.
pub(super) fn is_for_this_node(view: &View<'_>, run: &Run) -> bool {
    run.target.is_none_or(|target| target == view.stamp.owner.node)
}

/// Whether this node may start a run.
pub(super) fn may_start(view: &View<'_>, run: &Run, job: &JobRecord) -> bool {
    is_for_this_node(view, run) && view.world.is_eligible(&job.job.nodes)
}

/// Says why this node may not start a run that someone wants to start now.
pub(super) fn reject_elsewhere(view: &View<'_>, run: &Run, job: Option<&JobRecord>) -> Result<(), Rejection> {
    match run.target.filter(|_| !is_for_this_node(view, run)) {
        Some(node) => Err(Rejection::OtherNode(node)),
        None => reject_idle(view).and_then(|()| job.map_or(Ok(()), |job| reject_ineligible(view, job))),
    }
}

/// Rejects whatever would start a run here if this is not a node, or one that drains.
fn reject_idle(view: &View<'_>) -> Result<(), Rejection> {
    match view.world {
        world if !world.is_node => Err(Rejection::NotANode),
        world if world.is_draining => Err(Rejection::Draining),
        _ => Ok(()),
    }
}

fn reject_ineligible(view: &View<'_>, job: &JobRecord) -> Result<(), Rejection> {
    reject_idle(view)?;
    if view.world.is_eligible(&job.job.nodes) { Ok(()) } else { Err(Rejection::NotHere(job.id.clone())) }
}

/// What a node can do about a run that waits.
pub(super) enum Placement {
    /// Look whether it may start.
    Here,
    /// Leave it to its node, and look again then.
    Elsewhere(Instant),
    /// End it: its node is gone, or may not run it any more.
    Nowhere,
}

/// What this node can do about a run whose time has come. A node that went away for a moment keeps its runs; the commit
/// compares its record, so that it does when it comes back in between.
pub(super) fn placement_of(view: &View<'_>, run: &Run, job: &JobRecord) -> Placement {
    let (now, me) = (view.stamp.at, view.stamp.owner.node);
    let Some(target) = run.target else {
        // Its time is left as it is: a node that may start it finds by that time that nobody did, if it has not heard
        // of the run.
        let is_for_others = !may_start(view, run, job) && !view.world.eligible(me, &job.job.nodes).is_empty();
        return if is_for_others { Placement::Elsewhere(now.plus(WAIT_POLL)) } else { Placement::Here };
    };
    if target != me && view.world.is_there(me, target) {
        return Placement::Elsewhere(now.plus(WAIT_POLL));
    }
    if target == me && job.job.nodes.allow(&view.world.labels) {
        return Placement::Here;
    }
    let waits_since = if run.state == State::Waiting { run.entered(State::Waiting) } else { run.due };
    let beat = if target == me { None } else { view.node(target).map(|node| node.beat) };
    let given_up = waits_since.max(beat).unwrap_or(run.nominal).plus(GRACE);
    match now >= given_up {
        true => Placement::Nowhere,
        false if target == me => Placement::Here,
        false => Placement::Elsewhere(given_up),
    }
}

#[cfg(test)]
mod tests;

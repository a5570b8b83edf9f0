//! Where runs may start. Most runs may start on any node that has the job's labels. A job with `nodes: each` has one
//! run for every node; only that node may start it, and it overlaps only with runs of the same node.
//!
//! Locks, `max_running` and `after` apply across nodes: a success on any node counts.

use cronhold_schedule::{Instant, Span};

use super::run_lifecycle::WAIT_POLL;
use crate::decision::Rejection;
use crate::ids::NodeId;
use crate::job::NodeSelector;
use crate::policy::catch_up::GRACE;
use crate::policy::overlap;
use crate::record::{JobRecord, Run};
use crate::run::State;
use crate::view::DecisionView;

/// The largest number of nodes that an occurrence of a `nodes: each` job runs on, so that its claim stays a small unit.
/// If more nodes are eligible, those with the lowest ids run it.
pub const NODES_MAX: usize = 256;

/// A node that knows no node for a run leaves it as it is for this time after it was due: a node that has just joined,
/// and that this one does not know yet, may start it.
const JOIN_WAIT: Span = Span::from_secs(10);

/// The nodes that an occurrence gets a run for, this one first. Most jobs have a single run without a node (`None`).
/// Empty when no live node may run a `nodes: each` job.
pub(super) fn targets_of_occurrence(view: &DecisionView<'_>, job: &JobRecord) -> Vec<Option<NodeId>> {
    if !job.job.nodes.is_each() {
        return vec![None];
    }
    let me = view.stamp.owner.node;
    let first = view.world.eligible(me, &job.job.nodes).into_iter().take(NODES_MAX);
    let mut places: Vec<Option<NodeId>> = first.map(Some).collect();
    places.sort_by_key(|place| *place != Some(me));
    places
}

/// Whether this node may claim an occurrence: it may run the job itself, or the job has `nodes: each` and a live node
/// may.
pub(super) fn may_claim(view: &DecisionView<'_>, nodes: &NodeSelector, places: &[Option<NodeId>]) -> bool {
    if nodes.is_each() { !places.is_empty() } else { view.world.is_eligible(nodes) }
}

/// The target of a run that is created by hand: this node, for a job with `nodes: each`.
pub(super) fn target_of_request(view: &DecisionView<'_>, job: &JobRecord) -> Result<Option<NodeId>, Rejection> {
    if !job.job.nodes.is_each() {
        return Ok(None);
    }
    reject_ineligible(view, job)?;
    Ok(Some(view.stamp.owner.node))
}

/// The target of a rerun: that of the old run, as long as the job has `nodes: each`.
pub(super) fn target_of_rerun(
    view: &DecisionView<'_>,
    job: &JobRecord,
    old: &Run,
) -> Result<Option<NodeId>, Rejection> {
    match old.target.filter(|_| job.job.nodes.is_each()) {
        Some(node) => Ok(Some(node)),
        None => target_of_request(view, job),
    }
}

/// Whether the job's overlap policy applies between two runs with these targets.
pub(super) fn can_overlap(job: &JobRecord, one: Option<NodeId>, other: Option<NodeId>) -> bool {
    overlap::can_overlap(&job.job.nodes, one, other)
}

/// Whether a run has no target, or this node is its target.
pub(super) fn is_for_this_node(view: &DecisionView<'_>, run: &Run) -> bool {
    run.target.is_none_or(|target| target == view.stamp.owner.node)
}

/// Whether this node may start a run.
pub(super) fn may_start(view: &DecisionView<'_>, run: &Run, job: &JobRecord) -> bool {
    is_for_this_node(view, run) && view.world.is_eligible(&job.job.nodes)
}

/// Whether this node may create the runs of a job's triggers. It starts them itself.
pub(super) fn may_batch(view: &DecisionView<'_>, job: &JobRecord) -> bool {
    view.world.is_eligible(&job.job.nodes)
}

/// Rejects a start that has to happen on another node.
pub(super) fn reject_elsewhere(view: &DecisionView<'_>, run: &Run, job: Option<&JobRecord>) -> Result<(), Rejection> {
    match run.target.filter(|_| !is_for_this_node(view, run)) {
        Some(node) => Err(Rejection::OtherNode(node)),
        None => reject_idle(view).and_then(|()| job.map_or(Ok(()), |job| reject_ineligible(view, job))),
    }
}

/// Rejects whatever would start a run here if this is not a node, or one that starts nothing.
fn reject_idle(view: &DecisionView<'_>) -> Result<(), Rejection> {
    match view.world {
        world if !world.is_node => Err(Rejection::NotANode),
        world if world.is_draining => Err(Rejection::Draining),
        world => world.keeper_problem.as_deref().map_or(Ok(()), |why| Err(Rejection::KeeperFails(why.to_owned()))),
    }
}

fn reject_ineligible(view: &DecisionView<'_>, job: &JobRecord) -> Result<(), Rejection> {
    reject_idle(view)?;
    if view.world.is_eligible(&job.job.nodes) { Ok(()) } else { Err(Rejection::NotHere(job.id.clone())) }
}

/// Where a waiting run can go on.
pub(super) enum Placement {
    /// On this node.
    Here,
    /// On another node; check it again at this time.
    Elsewhere(Instant),
    /// On no node: its target is gone, or may not run the job any more.
    Nowhere,
}

/// Where a run whose time has come can go on. A node that is absent for a moment keeps its runs: the commit compares
/// the node's record, so a heartbeat in between makes it fail.
pub(super) fn placement_of(view: &DecisionView<'_>, run: &Run, job: &JobRecord) -> Placement {
    let (now, me) = (view.stamp.at, view.stamp.owner.node);
    let Some(target) = run.target else { return placement_on_any_node(view, run, job) };
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

/// Where a run without a target can go on. An ineligible node leaves the due time as it is if another node may start the
/// run: by it, an eligible node that missed the notification finds the run.
fn placement_on_any_node(view: &DecisionView<'_>, run: &Run, job: &JobRecord) -> Placement {
    let now = view.stamp.at;
    if may_start(view, run, job) {
        return Placement::Here;
    }
    if !view.world.eligible(view.stamp.owner.node, &job.job.nodes).is_empty() {
        return Placement::Elsewhere(now.plus(WAIT_POLL));
    }
    let known_at = run.due.unwrap_or(run.nominal).plus(JOIN_WAIT);
    if view.world.is_shared && now < known_at { Placement::Elsewhere(known_at) } else { Placement::Here }
}

#[cfg(test)]
mod tests;

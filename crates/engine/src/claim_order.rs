//! Which node acts first on something that several nodes could do. The order only saves work: the commit decides that
//! nothing happens twice.

use cronhold_core::job::NodeSelector;
use cronhold_core::policy::rendezvous::{place, wait};
use cronhold_core::record::{Record, RecordKey, Run};
use cronhold_core::{DecisionContext, JobId, NodeId, RunId, When};
use cronhold_schedule::{Instant, Span};
use cronhold_store::WriterSession;

use crate::local_programs::LocalPrograms;
use crate::pending_hints::PendingHints;
use crate::plan::{DueItem, PlanItem};

/// While claims are late, a node checks at this interval whether an item is still left to the nodes before it.
const RECHECK: Span = Span::from_millis(250);
/// Another node has changed the cursor of an item, most likely because it has claimed the item. If the cursor is not
/// reloaded after this time, the node checks again.
const RELOAD_WAIT: Span = Span::from_millis(50);
/// Nodes that may not run a job act this many positions after those that may.
const BEHIND_ELIGIBLE: usize = 2;
/// For repairs, each node in the order waits this many milliseconds longer than the node before it.
const REPAIR_STEP_MILLIS: u64 = 1_000;
/// The longest such wait, in steps.
const REPAIR_STEPS_MAX: u64 = 10;

/// The position of this node among those that could do something. It is a view on what the node knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimOrder<'a> {
    pub(crate) me: NodeId,
    pub(crate) world: &'a DecisionContext,
    pub(crate) session: &'a WriterSession,
    pub(crate) programs: &'a LocalPrograms,
    /// Records that other nodes have changed and that this node has not reloaded.
    pub(crate) hints: &'a PendingHints,
    /// How much longer this node leaves claims to the nodes before it, because claims are late.
    pub(crate) extra_wait: Span,
}

impl ClaimOrder<'_> {
    /// Until when this node leaves a due item to the nodes before it; `None` if it acts now.
    pub(crate) fn deferred_until(&self, due: &DueItem, now: Instant) -> Option<Instant> {
        let When::At(since) = due.due else { return None };
        if !self.world.is_shared {
            return None;
        }
        let position = self.position(&due.item, due.nominal);
        let is_claim = matches!(due.item, PlanItem::Fire(..));
        let extra_wait = if position > 0 && is_claim { self.extra_wait } else { Span::ZERO };
        let claim_at = since.plus(wait(position)).plus(extra_wait);
        if claim_at > now {
            return Some(if extra_wait == Span::ZERO { claim_at } else { claim_at.min(now.plus(RECHECK)) });
        }
        (position > 0 && self.has_foreign_change(&due.item)).then(|| now.plus(RELOAD_WAIT))
    }

    /// Whether another node has changed the cursor of a claim since this node read it.
    fn has_foreign_change(&self, item: &PlanItem) -> bool {
        let PlanItem::Fire(job, schedule) = item else { return false };
        !self.hints.is_empty() && self.hints.contains(&RecordKey::Cursor(job.clone(), schedule.clone()))
    }

    /// When this node checks a waiting run that a change of its own may have made possible.
    pub(crate) fn wake_after_own_change(&self, run: RunId, now: Instant) -> When {
        if self.world.is_shared && !self.every_node_may_start(run) { When::At(now) } else { When::Now }
    }

    /// When this node checks a waiting run that another node has changed, or may have made possible. That node acts
    /// first, unless it may be one that cannot start the run: then the usual order counts for both.
    pub(crate) fn wake_after_change(&self, run: RunId, now: Instant) -> Instant {
        if !self.every_node_may_start(run) {
            return now;
        }
        now.plus(wait(self.position_for_run(run).saturating_add(1)))
    }

    /// How much longer than the first node this node waits before it repairs something.
    pub(crate) fn repair_delay(&self, item: &PlanItem, nominal: Instant) -> Span {
        if !self.world.is_shared {
            return Span::ZERO;
        }
        let position = u64::try_from(self.position(item, Some(nominal))).unwrap_or(u64::MAX);
        Span::from_millis(position.min(REPAIR_STEPS_MAX) * REPAIR_STEP_MILLIS)
    }

    /// When this node decides about triggers that another node has received or made possible. That node acts first.
    pub(crate) fn batch_after_change(&self, job: &JobId, now: Instant) -> Instant {
        let position = self.position(&PlanItem::Batch(job.clone()), None);
        now.plus(wait(position.saturating_add(1)))
    }

    fn position(&self, item: &PlanItem, nominal: Option<Instant>) -> usize {
        let time = nominal.map_or(0, Instant::micros).to_be_bytes();
        match item {
            PlanItem::Fire(job, schedule) => self.position_for(Some(job), &[job.as_str(), schedule.as_str()], &time),
            PlanItem::CatchUp(job, schedule) => {
                self.position_for(Some(job), &[job.as_str(), schedule.as_str()], b"catch-up")
            }
            PlanItem::EndPause(job) => {
                self.position_for(None, &[job.as_ref().map_or("", JobId::as_str)], b"end of a pause")
            }
            PlanItem::Wake(run) => self.position_for_run(*run),
            PlanItem::Batch(job) => self.position_for(Some(job), &[job.as_str()], b"triggers"),
            PlanItem::Deliver(action) => self.position_for(None, &[], action.to_string().as_bytes()),
            PlanItem::Watchdog
            | PlanItem::Reap
            | PlanItem::ReloadChanges
            | PlanItem::CheckJobs(_)
            | PlanItem::CheckPools(_)
            | PlanItem::Prune(_)
            | PlanItem::Expire(_)
            | PlanItem::TrimOutputs(_) => 0,
        }
    }

    fn every_node_may_start(&self, run: RunId) -> bool {
        let nodes = self.nodes_of(self.cached_run(run).map(|run| &run.job));
        self.world.nodes.iter().all(|node| node.may_start() && nodes.allow(&node.labels))
    }

    /// This node is the first for a run that has its program here or that only this node may start.
    fn position_for_run(&self, id: RunId) -> usize {
        let run = self.cached_run(id);
        if self.programs.contains(id) || run.is_some_and(|run| run.target == Some(self.me)) {
            return 0;
        }
        self.position_for(run.map(|run| &run.job), &[], &id.bits().to_be_bytes())
    }

    fn position_for(&self, job: Option<&JobId>, names: &[&str], what: &[u8]) -> usize {
        let nodes = self.nodes_of(job);
        let eligible = self.world.nodes.iter().filter(|node| node.may_start() && nodes.allow(&node.labels));
        let parts: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).chain([what]).collect();
        match self.world.is_eligible(&nodes) {
            true => place(self.me, eligible, &parts),
            // Others come after them, one by one: only one of them has to record that no node may run it.
            false => BEHIND_ELIGIBLE + eligible.count() + place(self.me, self.world.nodes.iter(), &parts),
        }
    }

    fn cached_run(&self, id: RunId) -> Option<&Run> {
        match self.session.cached(&RecordKey::Run(id)) {
            Some(Record::Run(run)) => Some(run),
            _ => None,
        }
    }

    /// The nodes that a job selects.
    fn nodes_of(&self, job: Option<&JobId>) -> NodeSelector {
        match job.and_then(|job| self.session.cached(&RecordKey::Job(job.clone()))) {
            Some(Record::Job(job)) => job.job.nodes.clone(),
            _ => NodeSelector::Any,
        }
    }
}

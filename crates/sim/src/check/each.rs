//! A job with a run on each node gets one on each: an occurrence that is claimed without faults has a run for every
//! eligible node that has been up for a while. Nodes that joined or left just now are exempt.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{NodeRecord, Record, ScheduleId};
use cronhold_core::{JobId, NodeId};
use cronhold_schedule::{Instant, Span};
use cronhold_store::Unit;

use super::fitness::FaultWindows;
use super::{CheckResult, CheckerContext, DaemonChange, InvariantChecker, runs};

/// After this time every node knows the others: six seconds, and a few calls of up to two seconds each way.
const KNOWN_AFTER: Span = Span::from_secs(20);

/// Tracks which nodes are up.
#[derive(Debug, Default)]
pub(super) struct EachNodeChecker {
    fitness: FaultWindows,
}

impl InvariantChecker for EachNodeChecker {
    fn name(&self) -> &'static str {
        "each node gets its run"
    }

    fn before(&mut self, context: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        let mut claimed: BTreeMap<(&JobId, &ScheduleId, Instant), BTreeSet<NodeId>> = BTreeMap::new();
        for run in runs(unit).filter(|run| run.attempt == 1 && !context.model.runs.contains_key(&run.id)) {
            if let (Some(schedule), Some(target)) = (&run.schedule, run.target) {
                claimed.entry((&run.job, schedule, run.nominal)).or_default().insert(target);
            }
        }
        for ((job, _, nominal), nodes) in claimed {
            let Some(job) = context.model.jobs.get(job) else { continue };
            let may = context.model.nodes.values().filter(|node| node.may_start() && job.job.nodes.allow(&node.labels));
            if let Some(node) =
                may.filter(|node| !nodes.contains(&node.id)).find(|node| self.is_known(context, node.id))
            {
                return Err(format!("{} has no run for {nominal} on {}, which is up", job.id, node.name));
            }
        }
        for change in &unit.changes {
            if let RecordChange::Put(Record::Node(node)) = change {
                self.fitness.daemon_changed(Some(node.id), DaemonChange::Disturbed, context.at);
            }
        }
        Ok(())
    }

    fn heartbeat(&mut self, context: CheckerContext<'_>, node: &NodeRecord) -> CheckResult {
        self.fitness.heartbeat(node.id, context.at);
        Ok(())
    }

    fn daemon_changed(&mut self, context: CheckerContext<'_>, node: Option<NodeId>, change: DaemonChange) {
        self.fitness.daemon_changed(node, change, context.at);
    }
}

impl EachNodeChecker {
    /// Whether a node has been up long enough, and no node can have lost track of it.
    fn is_known(&self, context: CheckerContext<'_>, node: NodeId) -> bool {
        let others =
            context.model.nodes.keys().filter_map(|node| self.fitness.since(*node, context.at, context.is_shared));
        let since = self.fitness.since(node, context.at, context.is_shared);
        since.is_some_and(|since| others.max().unwrap_or(since).max(since).plus(KNOWN_AFTER) <= context.at)
    }
}

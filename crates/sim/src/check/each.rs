//! A job that has a run on each node has one on each: an occurrence that is claimed while all goes well has a run for
//! every node that may run it and has been there for a while. Who came or went just now may be in or not.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{NodeRecord, Record, ScheduleId};
use cronhold_core::{JobId, NodeId};
use cronhold_schedule::{Instant, Span};
use cronhold_store::Unit;

use super::fitness::FaultWindows;
use super::{CheckResult, CheckerContext, DaemonChange, InvariantChecker, runs};

/// After this long everybody knows who is there: six seconds, and some calls of up to two seconds each way.
const KNOWN_AFTER: Span = Span::from_secs(20);

/// Remembers who is there.
#[derive(Debug, Default)]
pub(super) struct EachNodeChecker {
    fitness: FaultWindows,
}

impl InvariantChecker for EachNodeChecker {
    fn name(&self) -> &'static str {
        "a run on each node is on each"
    }

    fn before(&mut self, scene: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        let mut claimed: BTreeMap<(&JobId, &ScheduleId, Instant), BTreeSet<NodeId>> = BTreeMap::new();
        for run in runs(unit).filter(|run| run.attempt == 1 && !scene.model.runs.contains_key(&run.id)) {
            if let (Some(schedule), Some(target)) = (&run.schedule, run.target) {
                claimed.entry((&run.job, schedule, run.nominal)).or_default().insert(target);
            }
        }
        for ((job, _, nominal), nodes) in claimed {
            let Some(job) = scene.model.jobs.get(job) else { continue };
            let may = scene.model.nodes.values().filter(|node| !node.draining && job.job.nodes.allow(&node.labels));
            if let Some(node) = may.filter(|node| !nodes.contains(&node.id)).find(|node| self.is_known(scene, node.id))
            {
                return Err(format!("{} has no run for {nominal} on {}, which is there", job.id, node.name));
            }
        }
        for change in &unit.changes {
            if let RecordChange::Put(Record::Node(node)) = change {
                self.fitness.turned(Some(node.id), DaemonChange::Disturbed, scene.at);
            }
        }
        Ok(())
    }

    fn beaten(&mut self, scene: CheckerContext<'_>, node: &NodeRecord) -> CheckResult {
        self.fitness.beaten(node.id, scene.at);
        Ok(())
    }

    fn turned(&mut self, scene: CheckerContext<'_>, node: Option<NodeId>, turn: DaemonChange) {
        self.fitness.turned(node, turn, scene.at);
    }
}

impl EachNodeChecker {
    /// Whether a node has been there long enough, and whoever claims cannot have lost sight of it.
    fn is_known(&self, scene: CheckerContext<'_>, node: NodeId) -> bool {
        let others = scene.model.nodes.keys().filter_map(|node| self.fitness.since(*node, scene.at, scene.is_shared));
        let since = self.fitness.since(node, scene.at, scene.is_shared);
        since.is_some_and(|since| others.max().unwrap_or(since).max(since).plus(KNOWN_AFTER) <= scene.at)
    }
}

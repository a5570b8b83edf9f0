//! Programs run only on eligible nodes: on a node with the labels that the job selects, and on the target node for a
//! job with a run on each node.

use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, starting};
use crate::store_model::name;

/// Checks every run that gets a program.
#[derive(Debug, Default)]
pub(super) struct PlacementChecker;

impl InvariantChecker for PlacementChecker {
    fn name(&self) -> &'static str {
        "programs run only on eligible nodes"
    }

    fn before(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in starting(model, unit) {
            let Some(owner) = run.owner else { return Err(format!("{} starts on no node", name(run))) };
            if let Some(target) = run.target.filter(|target| *target != owner.node) {
                return Err(format!("{} is for node {target} and starts on node {}", name(run), owner.node));
            }
            let (Some(job), Some(node)) = (model.jobs.get(&run.job), model.nodes.get(&owner.node)) else { continue };
            // The labels of a removed job are unknown, even if another job has the same name.
            if job.uid == run.uid && !job.job.nodes.allow(&node.labels) {
                let node = &node.name;
                return Err(format!("{} starts on {node}, which does not have the labels of its job", name(run)));
            }
        }
        Ok(())
    }
}

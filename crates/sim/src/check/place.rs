//! Programs run only where they may: on a node that has the labels which their job asks for, and on the very node that
//! a run is for, where its job has a run on each.

use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, starting};
use crate::store_model::name;

/// Looks at every run that is about to get a program.
#[derive(Debug, Default)]
pub(super) struct PlacementChecker;

impl InvariantChecker for PlacementChecker {
    fn name(&self) -> &'static str {
        "programs run where they may"
    }

    fn before(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in starting(model, unit) {
            let Some(owner) = run.owner else { return Err(format!("{} starts on no node", name(run))) };
            if let Some(target) = run.target.filter(|target| *target != owner.node) {
                return Err(format!("{} is for node {target} and starts on node {}", name(run), owner.node));
            }
            let (Some(job), Some(node)) = (model.jobs.get(&run.job), model.nodes.get(&owner.node)) else { continue };
            // Nobody knows any more what a job asked for that is gone, also when there is another of its name.
            if job.uid == run.uid && !job.job.nodes.allow(&node.labels) {
                let node = &node.name;
                return Err(format!("{} starts on {node}, which does not have the labels of its job", name(run)));
            }
        }
        Ok(())
    }
}

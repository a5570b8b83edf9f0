//! Nothing is launched without its commit: the unit that gave the run its program took effect before, recently, and for
//! this node. So nothing is launched while the store rejects writes, except for what it accepted just before.

use std::collections::BTreeMap;

use cronhold_core::{NodeId, RunId};
use cronhold_schedule::Span;
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, ObservedLaunch, starting};
use crate::store_model::name;

/// Maximum time from the commit to the launch: ten seconds, and half a second by which a node may be off from the
/// store's time.
const LAUNCH_WITHIN: Span = Span::from_millis(10_500);

/// Tracks commits that may be followed by a launch.
#[derive(Debug, Default)]
pub(super) struct LaunchChecker {
    /// When the commit took effect, and for which node.
    committed: BTreeMap<RunId, (Span, Option<NodeId>)>,
}

impl InvariantChecker for LaunchChecker {
    fn name(&self) -> &'static str {
        "nothing is launched without its commit"
    }

    fn before(&mut self, CheckerContext { model, at, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        for run in starting(model, unit) {
            self.committed.insert(run.id, (at, run.owner.map(|owner| owner.node)));
        }
        Ok(())
    }

    fn launched(
        &mut self,
        context: CheckerContext<'_>,
        ObservedLaunch { run, node, .. }: &ObservedLaunch<'_>,
    ) -> CheckResult {
        let Some((at, owner)) = self.committed.remove(&run.id) else {
            return Err(format!("{} was launched without a commit", name(run)));
        };
        if owner != Some(*node) {
            return Err(format!("{} was launched on node {node}, which does not own it", name(run)));
        }
        let late = context.at.minus(at);
        if late > LAUNCH_WITHIN {
            return Err(format!("{} was launched {late} after its commit", name(run)));
        }
        Ok(())
    }
}

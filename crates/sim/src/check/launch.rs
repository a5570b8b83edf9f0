//! Nothing is launched without its own commit: the one that gave the run its program took effect before, not long ago,
//! and for this node. So nothing at all is launched while the store takes no writes, but for what it took just before.

use std::collections::BTreeMap;

use cronhold_core::{NodeId, RunId};
use cronhold_schedule::Span;
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, InvariantChecker, ObservedLaunch, starting};
use crate::store_model::name;

/// A program starts so long after the commit at most; what is later must not start at all. Ten seconds, and half a
/// second by which a node may be wrong about the time.
const LAUNCH_WITHIN: Span = Span::from_millis(10_500);

/// Remembers which commits may be followed by a launch.
#[derive(Debug, Default)]
pub(super) struct LaunchChecker {
    /// When the run was given its program, and to whom.
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
        scene: CheckerContext<'_>,
        ObservedLaunch { run, node, .. }: &ObservedLaunch<'_>,
    ) -> CheckResult {
        let Some((at, owner)) = self.committed.remove(&run.id) else {
            return Err(format!("{} was launched, and no commit says so", name(run)));
        };
        if owner != Some(*node) {
            return Err(format!("{} was launched on node {node}, which it was not given to", name(run)));
        }
        let late = scene.at.minus(at);
        if late > LAUNCH_WITHIN {
            return Err(format!("{} was launched {late} after its commit", name(run)));
        }
        Ok(())
    }
}

//! A node whose keeper fails starts nothing as soon as its daemon can know that. What was decided before may take effect
//! later.

use std::collections::BTreeMap;

use cronhold_core::{NodeId, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, DaemonChange, InvariantChecker, starting};
use crate::store_model::name;

/// A daemon notices within six seconds that its keeper hangs. It may be off from the store's time by half a second, and
/// a decision uses the time of its beginning.
const KNOWN_AFTER: Span = Span::from_secs(8);

/// Tracks which keepers fail, and since when.
#[derive(Debug, Default)]
pub(super) struct KeeperChecker {
    failing: BTreeMap<NodeId, Instant>,
}

impl InvariantChecker for KeeperChecker {
    fn name(&self) -> &'static str {
        "a node whose keeper fails starts nothing"
    }

    fn before(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        if self.failing.is_empty() {
            return Ok(());
        }
        for run in starting(model, unit) {
            let since = run.owner.and_then(|owner| self.failing.get(&owner.node));
            let Some((since, decided)) = since.zip(run.entered(State::Starting)) else { continue };
            if decided > since.plus(KNOWN_AFTER) {
                return Err(format!("{} starts at {decided}, and the keeper fails since {since}", name(run)));
            }
        }
        Ok(())
    }

    fn daemon_changed(&mut self, context: CheckerContext<'_>, node: Option<NodeId>, change: DaemonChange) {
        let Some(node) = node else { return };
        match change {
            DaemonChange::KeeperFails => drop(self.failing.insert(node, context.now)),
            // If a clock was set, times cannot be compared.
            DaemonChange::KeeperWorks | DaemonChange::Disturbed => drop(self.failing.remove(&node)),
            // A daemon that starts or resumes has to notice it first.
            DaemonChange::Up => {
                if let Some(since) = self.failing.get_mut(&node) {
                    *since = context.now.max(*since);
                }
            }
            DaemonChange::Down
            | DaemonChange::StoreFaultBegins
            | DaemonChange::StoreFaultEnds
            | DaemonChange::SlowCall { .. }
            | DaemonChange::HintLost => {}
        }
    }
}

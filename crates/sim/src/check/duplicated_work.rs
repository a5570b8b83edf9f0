//! Nodes do not do the same work: few units are refused because another node was faster. The order of nodes, and
//! notifications of changes, see to that. Nodes that do not know about each other or about changes are excused.

use std::collections::BTreeMap;

use cronhold_core::NodeId;
use cronhold_core::decision::RecordChange;
use cronhold_core::record::{NodeRecord, Record, Run};
use cronhold_schedule::Span;
use cronhold_store::Unit;

use super::{CheckResult, CheckerContext, DaemonChange, InvariantChecker, runs};

/// A fault is over this long after its end: by then all nodes know of each other, and of what has changed.
const CALM_AFTER: Span = Span::from_secs(90);
/// Nodes wait for each other no longer than this, so a slow call does not matter afterwards.
const SLOW_AFTER: Span = Span::from_secs(1);
/// The longest ordinary call, one way, on a connection on which the order of nodes saves work.
const USUAL_MAX: Span = Span::from_millis(2);
/// Repeated units that are always allowed.
const ALLOWED: u64 = 12;
/// For this many committed units, one repeated unit is allowed.
const ALLOWED_OF: u64 = 10;

/// Counts units while nothing fails.
#[derive(Debug, Default)]
pub(super) struct DuplicatedWorkChecker {
    committed: u64,
    /// Refused units that would have done what was done already.
    repeated: u64,
    /// Faults that have begun and not ended, by node.
    faults: BTreeMap<Option<NodeId>, u32>,
    calm_from: Span,
}

impl InvariantChecker for DuplicatedWorkChecker {
    fn name(&self) -> &'static str {
        "nodes do not do the same work"
    }

    fn before(&mut self, context: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        // At the end of a pause all nodes do at once what was held back.
        let is_disturbing = |change: &RecordChange| match change {
            RecordChange::Put(Record::Node(_) | Record::Pause(_)) => true,
            RecordChange::Put(Record::JobState(state)) => {
                context.model.states.get(&state.job).is_some_and(|before| before.pauses != state.pauses)
            }
            _ => false,
        };
        if unit.changes.iter().any(is_disturbing) {
            self.disturb(context.at);
        }
        self.committed += u64::from(self.is_calm(context));
        Ok(())
    }

    fn refused(&mut self, context: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        // On a slow connection a node does not learn in time that the one before it in the order has acted.
        if !self.is_calm(context) || context.usual > USUAL_MAX {
            return Ok(());
        }
        let is_done = |run: &Run| context.model.runs.get(&run.id).is_some_and(|done| done.state == run.state);
        self.repeated += u64::from(runs(unit).any(is_done));
        if self.repeated <= ALLOWED + self.committed / ALLOWED_OF {
            return Ok(());
        }
        Err(format!("{} units repeated what another node had done, of {}", self.repeated, self.committed))
    }

    fn heartbeat(&mut self, context: CheckerContext<'_>, node: &NodeRecord) -> CheckResult {
        if !node.may_start() {
            self.disturb(context.at);
        }
        Ok(())
    }

    fn daemon_changed(&mut self, context: CheckerContext<'_>, node: Option<NodeId>, change: DaemonChange) {
        match change {
            DaemonChange::StoreFaultBegins | DaemonChange::KeeperFails | DaemonChange::Down => {
                *self.faults.entry(node).or_default() += 1;
            }
            DaemonChange::StoreFaultEnds | DaemonChange::KeeperWorks | DaemonChange::Up => {
                if let Some(count) = self.faults.get_mut(&node) {
                    *count = count.saturating_sub(1);
                }
            }
            DaemonChange::SlowCall { until } => {
                self.calm_from = self.calm_from.max(until.plus(SLOW_AFTER));
                return;
            }
            DaemonChange::Disturbed | DaemonChange::HintLost => {}
        }
        self.disturb(context.at);
    }
}

impl DuplicatedWorkChecker {
    fn disturb(&mut self, at: Span) {
        self.calm_from = self.calm_from.max(at.plus(CALM_AFTER));
    }

    fn is_calm(&self, context: CheckerContext<'_>) -> bool {
        context.at >= self.calm_from && self.faults.values().all(|count| *count == 0)
    }
}

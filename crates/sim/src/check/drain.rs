//! A draining node starts nothing as soon as it can know that it drains. It reads the list of nodes with each
//! heartbeat. The first reply after the drain may belong to an earlier request; the second does not.

use std::collections::BTreeMap;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{NodeRecord, Record};
use cronhold_core::{NodeId, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Unit, UnitReceipt};

use super::{CheckResult, CheckerContext, InvariantChecker, starting};
use crate::store_model::name;

/// A node may be off from the store's time by half a second, and a decision uses the time of its beginning.
const SLACK: Span = Span::from_secs(1);

/// Tracks which nodes drain, and since when they must know it.
#[derive(Debug, Default)]
pub(super) struct DrainChecker {
    draining: BTreeMap<NodeId, DrainingNode>,
}

#[derive(Debug, Default)]
struct DrainingNode {
    reads: u32,
    since: Option<Instant>,
}

impl DrainChecker {
    fn update(&mut self, node: &NodeRecord) {
        if node.draining {
            self.draining.entry(node.id).or_default();
        } else {
            self.draining.remove(&node.id);
        }
    }
}

impl InvariantChecker for DrainChecker {
    fn name(&self) -> &'static str {
        "a draining node starts nothing"
    }

    fn before(&mut self, CheckerContext { model, .. }: CheckerContext<'_>, unit: &Unit) -> CheckResult {
        if self.draining.is_empty() {
            return Ok(());
        }
        for run in starting(model, unit) {
            let known = run.owner.and_then(|owner| self.draining.get(&owner.node)).and_then(|known| known.since);
            let Some((since, decided)) = known.zip(run.entered(State::Starting)) else { continue };
            if decided > since.plus(SLACK) {
                return Err(format!("{} starts at {decided} on a node that knows since {since}", name(run)));
            }
        }
        Ok(())
    }

    fn after(&mut self, _: CheckerContext<'_>, unit: &Unit, _: &UnitReceipt) -> CheckResult {
        for change in &unit.changes {
            if let RecordChange::Put(Record::Node(node)) = change {
                self.update(node);
            }
        }
        Ok(())
    }

    fn heartbeat(&mut self, _: CheckerContext<'_>, node: &NodeRecord) -> CheckResult {
        self.update(node);
        Ok(())
    }

    fn received_nodes(&mut self, context: CheckerContext<'_>, node: NodeId) {
        if let Some(known) = self.draining.get_mut(&node) {
            known.reads += 1;
            if known.reads == 2 {
                known.since = Some(context.now);
            }
        }
    }
}

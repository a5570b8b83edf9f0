//! A node that drains starts nothing any more, as soon as it can know: it asks for the list of nodes with each beat. The
//! first answer that it hears may be to what it had asked before, the second is not.

use std::collections::BTreeMap;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{NodeRecord, Record};
use cronhold_core::{NodeId, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Unit, UnitReceipt};

use super::{CheckResult, CheckerContext, InvariantChecker, starting};
use crate::store_model::name;

/// A node may be wrong about the store's time by half a second, and a decision takes its time when it begins.
const SLACK: Span = Span::from_secs(1);

/// Remembers who drains, and since when they must know.
#[derive(Debug, Default)]
pub(super) struct DrainChecker {
    draining: BTreeMap<NodeId, DrainingNode>,
}

#[derive(Debug, Default)]
struct DrainingNode {
    looks: u32,
    since: Option<Instant>,
}

impl DrainChecker {
    fn note(&mut self, node: &NodeRecord) {
        if node.draining {
            self.draining.entry(node.id).or_default();
        } else {
            self.draining.remove(&node.id);
        }
    }
}

impl InvariantChecker for DrainChecker {
    fn name(&self) -> &'static str {
        "a node that drains starts nothing"
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
                self.note(node);
            }
        }
        Ok(())
    }

    fn beaten(&mut self, _: CheckerContext<'_>, node: &NodeRecord) -> CheckResult {
        self.note(node);
        Ok(())
    }

    fn saw_nodes(&mut self, scene: CheckerContext<'_>, node: NodeId) {
        if let Some(known) = self.draining.get_mut(&node) {
            known.looks += 1;
            if known.looks == 2 {
                known.since = Some(scene.now);
            }
        }
    }
}

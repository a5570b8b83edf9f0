//! Drains a node, or lets it start runs again. A draining node keeps the programs that it runs.

use std::sync::Arc;

use super::draft::UnitDraft;
use crate::decision::{CommandReply, DecidedUnit, Rejection};
use crate::ids::NodeId;
use crate::record::{NodeRecord, Record};
use crate::view::{DecisionView, Halt};

pub(super) fn decide(view: &DecisionView<'_>, id: NodeId, on: bool) -> Result<DecidedUnit, Halt> {
    let node = view.node(id).ok_or(Rejection::NoNode(id))?;
    let mut draft = UnitDraft::new(view);
    if node.draining == on {
        return draft.finish(CommandReply::Unchanged);
    }
    draft.put(Record::Node(Arc::new(NodeRecord { draining: on, ..(*node).clone() })));
    draft.finish(CommandReply::Done)
}

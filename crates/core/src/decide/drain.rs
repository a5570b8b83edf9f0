//! Drains a node, or lets it start runs again. A draining node keeps the programs that it runs.

use std::sync::Arc;

use super::draft::UnitDraft;
use crate::decision::{Answer, Done, Rejection};
use crate::ids::NodeId;
use crate::record::{Node, Record};
use crate::view::{Halt, View};

pub(super) fn decide(view: &View<'_>, id: NodeId, on: bool) -> Result<Done, Halt> {
    let node = view.node(id).ok_or(Rejection::NoNode(id))?;
    let mut draft = UnitDraft::new(view);
    if node.draining == on {
        return draft.finish(Answer::Unchanged);
    }
    draft.put(Record::Node(Arc::new(Node { draining: on, ..(*node).clone() })));
    draft.finish(Answer::Done)
}

//! From what someone calls a node to the node. Nodes are called by their names, which those that are gone can have had
//! before, or by their ids.

use std::sync::Arc;

use cronhold_api::ProblemCode;
use cronhold_core::NodeId;
use cronhold_core::record::NodeRecord;
use cronhold_schedule::text::{did_you_mean, shortened};
use cronhold_store::{Store, all_nodes};

use crate::problem::ApiError;

/// The node that someone names. One that is there counts more than those that are gone.
pub(crate) async fn find_node(store: &dyn Store, name: &str) -> Result<Arc<NodeRecord>, ApiError> {
    let nodes = all_nodes(store).await?;
    let id = NodeId::parse(name).ok();
    if let Some(node) = nodes.iter().find(|node| Some(node.id) == id) {
        return Ok(Arc::clone(node));
    }
    let now = store.time().await?;
    let mut called: Vec<&Arc<NodeRecord>> = nodes.iter().filter(|node| node.name == name).collect();
    if called.iter().any(|node| node.is_there(now)) {
        called.retain(|node| node.is_there(now));
    }
    match called[..] {
        [node] => Ok(Arc::clone(node)),
        [] => {
            let near = did_you_mean(name, nodes.iter().map(|node| node.name.as_str()));
            let hint = near.map_or_else(
                || "`cronhold nodes` shows the nodes".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            Err(ApiError::new(ProblemCode::NotFound, format!("there is no node `{}`", shortened(name))).hint(hint))
        }
        _ => {
            let detail = format!("{} nodes are called `{}`", called.len(), shortened(name));
            Err(ApiError::new(ProblemCode::Conflict, detail).hint("give the id of one; `cronhold nodes` shows them"))
        }
    }
}

//! Finds a node by its name or its id. Nodes that are gone can have the same name as a current one.

use std::sync::Arc;

use cronhold_api::ProblemCode;
use cronhold_core::NodeId;
use cronhold_core::record::NodeRecord;
use cronhold_schedule::text::{did_you_mean, shortened};
use cronhold_store::{Store, all_nodes};

use crate::problem::ApiError;

/// Finds a node by its name or its id. A node that is alive takes precedence over gone ones with the same name.
pub(crate) async fn find_node(store: &dyn Store, name: &str) -> Result<Arc<NodeRecord>, ApiError> {
    let nodes = all_nodes(store).await?;
    let id = NodeId::parse(name).ok();
    if let Some(node) = nodes.iter().find(|node| Some(node.id) == id) {
        return Ok(Arc::clone(node));
    }
    let now = store.time().await?;
    let mut named: Vec<&Arc<NodeRecord>> = nodes.iter().filter(|node| node.name == name).collect();
    if named.iter().any(|node| node.is_there(now)) {
        named.retain(|node| node.is_there(now));
    }
    match named[..] {
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
            let detail = format!("{} nodes have the name `{}`", named.len(), shortened(name));
            Err(ApiError::new(ProblemCode::Conflict, detail)
                .hint("use the id of a node; `cronhold nodes` shows the ids"))
        }
    }
}

//! Nodes, as the store knows them.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use cronhold_api::{Node, Problem};
use cronhold_core::record::{Key, Record};
use cronhold_store::Query;

use crate::App;
use crate::problem::Denied;

/// Nodes that are read at once.
const PAGE: usize = 200;
/// Nodes that are told at most.
const NODES_MAX: usize = 10_000;

/// The routes.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/v1/nodes", get(list))
}

/// All nodes by id.
#[utoipa::path(get, path = "/api/v1/nodes", tag = "nodes",
    responses((status = 200, body = Vec<Node>), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Json<Vec<Node>>, Denied> {
    let mut nodes = Vec::new();
    let mut after = None;
    while nodes.len() < NODES_MAX {
        let page = app.store.page(&Query::Nodes { after }, PAGE).await?;
        nodes.extend(page.records.iter().filter_map(|stored| told(&stored.record, &app)));
        after = match page.next(PAGE) {
            Some(Key::Node(last)) => Some(last),
            _ => break,
        };
    }
    Ok(Json(nodes))
}

fn told(record: &Record, app: &App) -> Option<Node> {
    let Record::Node(node) = record else { return None };
    Some(Node {
        id: node.id.to_string(),
        name: node.name.clone(),
        incarnation: node.incarnation,
        since: node.since,
        beat: node.beat,
        labels: node.labels.iter().cloned().collect(),
        draining: node.draining,
        is_this: node.id == app.this,
    })
}

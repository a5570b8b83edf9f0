//! The nodes in the store, and draining them.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use cronhold_api::{DrainReply, NodeSummary, Problem};
use cronhold_core::command::Command;
use cronhold_core::decision::{CommandReply, Rejection};
use cronhold_core::record::{self, Actor, Record, RecordKey};
use cronhold_schedule::Instant;
use cronhold_store::{Fault, Query, all_nodes};

use super::pauses::EmptyBody;
use crate::AppState;
use crate::caller::RequestIdentity;
use crate::extract::{JsonBody, PathSegment};
use crate::find_node::find_node;
use crate::problem::ApiError;

/// Maximum number of runs of a node that are counted.
const RUNS_MAX: usize = 1_000;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/v1/nodes", get(list))
        .route("/api/v1/nodes/{node}/drain", post(drain))
        .route("/api/v1/nodes/{node}/undrain", post(undrain))
}

/// List nodes, ordered by id
#[utoipa::path(get, path = "/api/v1/nodes", tag = "nodes",
    responses((status = 200, body = Vec<NodeSummary>), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn list(State(app): State<Arc<AppState>>) -> Result<Json<Vec<NodeSummary>>, ApiError> {
    let now = app.store.time().await?;
    let mut nodes = Vec::new();
    for node in all_nodes(&*app.store).await? {
        nodes.push(summary(&node, now, &app).await?);
    }
    Ok(Json(nodes))
}

/// Drain a node
///
/// The node starts nothing new. Its runs continue.
#[utoipa::path(post, path = "/api/v1/nodes/{node}/drain", tag = "nodes",
    params(("node" = String, Path, description = "Name or id of the node")),
    responses((status = 200, body = DrainReply), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn drain(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Result<Json<DrainReply>, ApiError> {
    set(&app, actor, &name, true).await.map(Json)
}

/// Undrain a node
///
/// The node starts runs again.
#[utoipa::path(post, path = "/api/v1/nodes/{node}/undrain", tag = "nodes",
    params(("node" = String, Path, description = "Name or id of the node")),
    responses((status = 200, body = DrainReply), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn undrain(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    PathSegment(name): PathSegment,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Result<Json<DrainReply>, ApiError> {
    set(&app, actor, &name, false).await.map(Json)
}

/// Sets whether a node drains, and returns the node after the change.
async fn set(app: &AppState, actor: Actor, name: &str, on: bool) -> Result<DrainReply, ApiError> {
    let id = find_node(&*app.store, name).await?.id;
    let reply = app.request(actor, Command::Drain { node: id, on }).await?;
    let stored = app.store.load(&[RecordKey::Node(id)]).await?.into_iter().flatten().next();
    let Some(Record::Node(node)) = stored.map(|stored| stored.record) else { return Err(Rejection::NoNode(id).into()) };
    let now = app.store.time().await?;
    Ok(DrainReply { changed: reply == CommandReply::Done, node: summary(&node, now, app).await? })
}

async fn summary(node: &record::NodeRecord, now: Instant, app: &AppState) -> Result<NodeSummary, Fault> {
    let is_this = node.id == app.this;
    let runs = app.store.page(&Query::Unfinished { node: Some(node.id), after: None }, RUNS_MAX).await?.records.len();
    Ok(NodeSummary {
        id: node.id.to_string(),
        name: node.name.clone(),
        incarnation: node.incarnation,
        since: node.since,
        beat: node.beat,
        labels: node.labels.iter().cloned().collect(),
        draining: node.draining,
        // This node is alive even if its heartbeats have not reached the store for a while.
        gone: !node.is_there(now) && !is_this,
        skew_ms: node.skew.map(|micros| micros / 1_000),
        zone_data: node.zones.clone(),
        // A node that is alone does not store it.
        keeper_problem: if is_this { app.feed.keeper_problem() } else { node.keeper_problem.clone() },
        runs: runs as u64,
        is_this,
    })
}

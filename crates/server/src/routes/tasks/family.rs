//! The children of a task: lists, the tree below it, and who is whose child.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use cronhold_api::{
    AdoptBody, DisownBody, LIMIT_MAX, Problem, TaskChild, TaskChildList, TaskDetail, TaskSummary, TaskTree,
    TaskTreeNode,
};
use cronhold_core::task::{ChildName, ChildTarget, TaskAct, TaskKey};
use serde::Deserialize;

use super::show::detail;
use super::{commit_acts, find, find_named, target, task_store, valid};
use crate::AppState;
use crate::extract::{JsonBody, PathSegment, QueryParams, limit};
use crate::problem::ApiError;
use crate::routes::runs::read;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChildrenQuery {
    after: Option<String>,
    limit: Option<usize>,
}

/// List the children of a task, ordered by name
#[utoipa::path(get, path = "/api/v1/tasks/{id}/children", tag = "tasks",
    params(
        ("id" = String, Path, description = "Task: its id or an alias"),
        ("after" = Option<String>, Query, description = "Only children after this name: `next` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000,
            description = "Maximum number of children; default: 50"),
    ),
    responses((status = 200, body = TaskChildList), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn children(
    State(app): State<Arc<AppState>>,
    PathSegment(id): PathSegment,
    QueryParams(which): QueryParams<ChildrenQuery>,
) -> Result<Json<TaskChildList>, ApiError> {
    let after = read("after", which.after.as_deref(), ChildName::parse)?;
    let limit = limit(which.limit)?;
    let tasks = task_store(&app)?;
    let task = find(&*tasks, &id).await?.id;
    let mut found = tasks.children(task, after.as_ref(), limit + 1).await?;
    let is_last = found.len() <= limit;
    found.truncate(limit);
    let next = found.last().filter(|_| !is_last).map(|(name, _)| name.to_string());
    let mut children = Vec::with_capacity(found.len());
    for (name, child) in found {
        // A child that was deleted meanwhile is left out.
        if let Some(record) = tasks.find(&TaskKey::Id(child)).await? {
            let TaskSummary { id, queue, class, status, .. } = TaskSummary::from(&record);
            children.push(TaskChild { name: name.to_string(), id, queue, class, status });
        }
    }
    Ok(Json(TaskChildList { children, next }))
}

/// Get a task and its descendants, at most 1,000 of them
#[utoipa::path(get, path = "/api/v1/tasks/{id}/tree", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias")),
    responses((status = 200, body = TaskTree), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn tree(
    State(app): State<Arc<AppState>>,
    PathSegment(id): PathSegment,
) -> Result<Json<TaskTree>, ApiError> {
    let tasks = task_store(&app)?;
    let root = find(&*tasks, &id).await?.id;
    let (mut nodes, mut cut) = (Vec::new(), false);
    // Tasks that are still to be listed, the next one last.
    let mut open = vec![(root, 0)];
    while let Some((task, depth)) = open.pop() {
        if nodes.len() == LIMIT_MAX {
            cut = true;
            break;
        }
        // A task that was deleted meanwhile is left out.
        let Some(record) = tasks.find(&TaskKey::Id(task)).await? else { continue };
        nodes.push(TaskTreeNode { depth, task: TaskSummary::from(&record) });
        let room = LIMIT_MAX - nodes.len();
        let mut below = tasks.children(task, None, room + 1).await?;
        cut |= below.len() > room;
        below.truncate(room);
        open.extend(below.into_iter().rev().map(|(_, child)| (child, depth + 1)));
    }
    Ok(Json(TaskTree { tasks: nodes, cut }))
}

/// Make a task the child of another
#[utoipa::path(post, path = "/api/v1/tasks/{id}/adopt", tag = "tasks",
    params(("id" = String, Path, description = "Parent: its id or an alias")),
    request_body = AdoptBody,
    responses((status = 200, body = TaskDetail), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn adopt(
    State(app): State<Arc<AppState>>,
    PathSegment(id): PathSegment,
    JsonBody(AdoptBody { child, name }): JsonBody<AdoptBody>,
) -> Result<Json<TaskDetail>, ApiError> {
    let tasks = task_store(&app)?;
    let parent = find(&*tasks, &id).await?.id;
    let name = valid("name", ChildName::parse(&name))?;
    let child = target(find_named(&*tasks, &child).await?.id);
    commit_acts(&*tasks, vec![TaskAct::Adopt { parent: target(parent), child, name }]).await?;
    detail(&*tasks, parent).await
}

/// Take a child from its parent
#[utoipa::path(post, path = "/api/v1/tasks/{id}/disown", tag = "tasks",
    params(("id" = String, Path, description = "Parent: its id or an alias")),
    request_body = DisownBody,
    responses((status = 200, body = TaskDetail), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn disown(
    State(app): State<Arc<AppState>>,
    PathSegment(id): PathSegment,
    JsonBody(DisownBody { name }): JsonBody<DisownBody>,
) -> Result<Json<TaskDetail>, ApiError> {
    let tasks = task_store(&app)?;
    let parent = find(&*tasks, &id).await?.id;
    let child = ChildTarget::Name(valid("name", ChildName::parse(&name))?);
    commit_acts(&*tasks, vec![TaskAct::Disown { parent: target(parent), child }]).await?;
    detail(&*tasks, parent).await
}

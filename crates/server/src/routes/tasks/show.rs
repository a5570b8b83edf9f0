//! The list of tasks, and one task in detail.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use cronhold_api::{LIMIT_MAX, Problem, TaskDetail, TaskList, TaskPortSummary, TaskSummary};
use cronhold_core::task::{QueueName, TaskId, TaskRecord, TaskRefusal, TaskStatus};
use cronhold_store::tasks::{PortWindow, TaskQuery, TaskStore, WindowLimits};
use serde::Deserialize;

use super::{find, task_store};
use crate::AppState;
use crate::extract::{PathSegment, QueryParams, limit};
use crate::problem::ApiError;
use crate::routes::runs::read;

/// A window without items and children, which are read on their own.
const BARE: WindowLimits = WindowLimits { items: 0, bytes: 0, children: 0 };

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TasksQuery {
    status: Option<String>,
    queue: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

/// List tasks, ordered by id
#[utoipa::path(get, path = "/api/v1/tasks", tag = "tasks",
    params(
        ("status" = Option<String>, Query, description = "Only tasks with this status"),
        ("queue" = Option<String>, Query, description = "Only tasks of this queue"),
        ("after" = Option<u64>, Query, description = "Only tasks after this one: `next` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000,
            description = "Maximum number of tasks; default: 50"),
    ),
    responses((status = 200, body = TaskList), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn list(
    State(app): State<Arc<AppState>>,
    QueryParams(which): QueryParams<TasksQuery>,
) -> Result<Json<TaskList>, ApiError> {
    let query = TaskQuery {
        status: read("status", which.status.as_deref(), TaskStatus::parse)?,
        queue: read("queue", which.queue.as_deref(), QueueName::parse)?,
        after: read("after", which.after.as_deref(), TaskId::parse)?,
    };
    let limit = limit(which.limit)?;
    let mut records = task_store(&app)?.page(&query, limit + 1).await?;
    let is_last = records.len() <= limit;
    records.truncate(limit);
    let next = records.last().filter(|_| !is_last).map(|last| last.id.number());
    Ok(Json(TaskList { tasks: records.iter().map(TaskSummary::from).collect(), next }))
}

/// Get a task, with its ports, state and children
#[utoipa::path(get, path = "/api/v1/tasks/{id}", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias")),
    responses((status = 200, body = TaskDetail), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn show(
    State(app): State<Arc<AppState>>,
    PathSegment(id): PathSegment,
) -> Result<Json<TaskDetail>, ApiError> {
    let tasks = task_store(&app)?;
    let task = find(&*tasks, &id).await?;
    detail(&*tasks, task.id).await
}

/// A task as it is now.
pub(crate) async fn detail(tasks: &dyn TaskStore, id: TaskId) -> Result<Json<TaskDetail>, ApiError> {
    let window = tasks.window(id, &BARE).await?.ok_or(TaskRefusal::UnknownTask(id))?;
    let mut children = tasks.children(id, None, LIMIT_MAX + 1).await?;
    let more_children = children.len() > LIMIT_MAX;
    children.truncate(LIMIT_MAX);
    let record: &TaskRecord = &window.task;
    Ok(Json(TaskDetail {
        task: TaskSummary::from(record),
        args: record.args.clone(),
        aliases: window.aliases.iter().map(ToString::to_string).collect(),
        children: children.iter().map(|(name, child)| (name.to_string(), child.number())).collect(),
        more_children,
        inports: ports(&window.inports),
        outports: ports(&window.outports),
        creates_inports: window.has_inport_template,
        creates_outports: window.has_outport_template,
        state: window.state.iter().map(|(field, value)| (field.to_string(), value.clone())).collect(),
    }))
}

fn ports(windows: &[PortWindow]) -> BTreeMap<String, TaskPortSummary> {
    windows.iter().map(|window| (window.name.to_string(), port_summary(window))).collect()
}

/// A port without its values.
pub(super) fn port_summary(window: &PortWindow) -> TaskPortSummary {
    TaskPortSummary {
        size: window.size,
        default: window.default.as_ref().map(|item| item.data.clone()),
        channels: window.channels.iter().map(ToString::to_string).collect(),
    }
}

//! Ports of a task: their values, their options, and moving values between ports.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use cronhold_api::{
    ConnectBody, ConnectReply, PortChangeBody, PortItemList, PortItemValue, PortReadBody, PortReadReply, Problem,
    ProblemCode, TaskDetail, TaskPortSummary, TaskPortsBody,
};
use cronhold_core::task::{
    ActOutcome, PortAddress, PortDirection, PortItem, PortName, PortTarget, TaskAct, TaskId, TaskRefusal,
};
use cronhold_store::tasks::{PortWindow, TaskStore, WindowLimits};
use serde::Deserialize;

use super::create::{channels, port_map};
use super::show::{detail, port_summary};
use super::{commit, commit_acts, find, find_named, target, task_store, unit, valid};
use crate::AppState;
use crate::extract::{JsonBody, PathSegment, QueryParams, limit};
use crate::problem::ApiError;

/// Values that one request takes.
const READ_MAX: u64 = 10_000;
/// Bytes of the values of a page.
const PAGE_BYTES: usize = 1 << 20;

/// The task and the port in a path.
#[derive(Debug)]
pub(crate) struct TaskPortPath(String, PortName);

impl<S: Send + Sync> FromRequestParts<S> for TaskPortPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path: Result<Path<(String, String)>, _> = Path::from_request_parts(parts, state).await;
        let Path((task, port)) =
            path.map_err(|error| ApiError::new(ProblemCode::BadRequest, format!("invalid path: {error}")))?;
        let port = PortName::parse(&port).map_err(|error| ApiError::unreadable(ProblemCode::BadRequest, error))?;
        Ok(Self(task, port))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemsQuery {
    from: Option<u64>,
    limit: Option<usize>,
}

/// List the values of an in port, without taking them
#[utoipa::path(get, path = "/api/v1/tasks/{id}/inports/{port}", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias"), ("port" = String, Path, description = "Port"),
        ("from" = Option<u64>, Query, description = "Position of the first value: `next` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000, description = "Maximum number of values; default: 50")),
    responses((status = 200, body = PortItemList), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn show_in(
    State(app): State<Arc<AppState>>,
    path: TaskPortPath,
    QueryParams(query): QueryParams<ItemsQuery>,
) -> Result<Json<PortItemList>, ApiError> {
    show(&app, path, PortDirection::In, query).await
}

/// List the values of an out port, without taking them
#[utoipa::path(get, path = "/api/v1/tasks/{id}/outports/{port}", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias"), ("port" = String, Path, description = "Port"),
        ("from" = Option<u64>, Query, description = "Position of the first value: `next` of the previous page"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 1000, description = "Maximum number of values; default: 50")),
    responses((status = 200, body = PortItemList), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn show_out(
    State(app): State<Arc<AppState>>,
    path: TaskPortPath,
    QueryParams(query): QueryParams<ItemsQuery>,
) -> Result<Json<PortItemList>, ApiError> {
    show(&app, path, PortDirection::Out, query).await
}

async fn show(
    app: &AppState,
    TaskPortPath(task, port): TaskPortPath,
    direction: PortDirection,
    ItemsQuery { from, limit: count }: ItemsQuery,
) -> Result<Json<PortItemList>, ApiError> {
    let limits = WindowLimits { items: limit(count)?, bytes: PAGE_BYTES, children: 0 };
    let tasks = task_store(app)?;
    let address = PortAddress { task: find(&*tasks, &task).await?.id, direction, port };
    let from = from.unwrap_or(0).min(i64::MAX as u64);
    let window = tasks.items(&address, from, &limits).await?;
    let window = window.ok_or_else(|| TaskRefusal::UnknownPort(address.clone()))?;
    // What lies before the position was counted in the size, unless it is the first one.
    let first = match window.position == from && window.size > 0 {
        true => tasks.items(&address, 0, &WindowLimits { items: 1, ..limits }).await?.map_or(0, |port| port.position),
        false => window.position,
    };
    let (size, end) = (window.size, window.position + window.items.len() as u64);
    let next = (end < first + size && !window.items.is_empty()).then_some(end);
    let TaskPortSummary { default, channels, .. } = port_summary(&window);
    let PortWindow { name, position, items, .. } = window;
    let items = items.iter().map(PortItemValue::from).collect();
    Ok(Json(PortItemList { name: name.to_string(), size, position, items, next, default, channels }))
}

/// Write values to an in port, or change its options
///
/// Written values request a step of the task, unless `notify` is false.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/inports/{port}", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias"), ("port" = String, Path, description = "Port"),
        ("Idempotency-Key" = Option<String>, Header,
            description = "Requests with the same key within 24 hours write to this port only once")),
    request_body = PortChangeBody,
    responses((status = 200, body = TaskPortSummary), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn change_in(
    State(app): State<Arc<AppState>>,
    path: TaskPortPath,
    headers: HeaderMap,
    JsonBody(body): JsonBody<PortChangeBody>,
) -> Result<Json<TaskPortSummary>, ApiError> {
    change(&app, path, PortDirection::In, &headers, body).await
}

/// Write values to an out port, or change its options
///
/// Written values are published on the channels of the port, and request a step of the parent, unless `notify` is false.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/outports/{port}", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias"), ("port" = String, Path, description = "Port"),
        ("Idempotency-Key" = Option<String>, Header,
            description = "Requests with the same key within 24 hours write to this port only once")),
    request_body = PortChangeBody,
    responses((status = 200, body = TaskPortSummary), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn change_out(
    State(app): State<Arc<AppState>>,
    path: TaskPortPath,
    headers: HeaderMap,
    JsonBody(body): JsonBody<PortChangeBody>,
) -> Result<Json<TaskPortSummary>, ApiError> {
    change(&app, path, PortDirection::Out, &headers, body).await
}

async fn change(
    app: &AppState,
    TaskPortPath(task, port): TaskPortPath,
    direction: PortDirection,
    headers: &HeaderMap,
    body: PortChangeBody,
) -> Result<Json<TaskPortSummary>, ApiError> {
    let tasks = task_store(app)?;
    let task = find(&*tasks, &task).await?.id;
    let address = PortAddress { task, direction, port: port.clone() };
    let port = PortTarget::new(task, direction, port);
    if body.default.is_some() && body.clear_default {
        let error = ApiError::new(ProblemCode::Invalid, "`default` and `clear_default` exclude each other");
        return Err(error.hint("remove one of them"));
    }
    let mut acts = Vec::new();
    if let Some(names) = &body.channels {
        acts.push(TaskAct::SetChannels { port: port.clone(), channels: valid("channels", channels(names))? });
    }
    if body.default.is_some() || body.clear_default {
        acts.push(TaskAct::SetDefault { port: port.clone(), item: body.default.map(PortItem::new) });
    }
    let items: Vec<PortItem> = body.data.into_iter().chain(body.list).map(PortItem::new).collect();
    if !items.is_empty() {
        acts.push(TaskAct::Write { port, items, as_default: false, notify: body.notify });
    }
    if acts.is_empty() {
        let error = ApiError::new(ProblemCode::Invalid, "the request writes nothing and changes nothing");
        return Err(error.hint("set `data`, `list`, `default`, `clear_default` or `channels`"));
    }
    commit(&*tasks, unit(headers, &address.to_string(), acts)?).await?;
    let window = tasks.items(&address, 0, &WindowLimits { items: 1, bytes: 0, children: 0 }).await?;
    Ok(Json(port_summary(&window.ok_or(TaskRefusal::UnknownPort(address))?)))
}

/// Take values from an in port
#[utoipa::path(post, path = "/api/v1/tasks/{id}/inports/{port}/read", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias"), ("port" = String, Path, description = "Port")),
    request_body = PortReadBody,
    responses((status = 200, body = PortReadReply), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn read_in(
    State(app): State<Arc<AppState>>,
    path: TaskPortPath,
    JsonBody(body): JsonBody<PortReadBody>,
) -> Result<Json<PortReadReply>, ApiError> {
    read(&app, path, PortDirection::In, body).await
}

/// Take values from an out port
#[utoipa::path(post, path = "/api/v1/tasks/{id}/outports/{port}/read", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias"), ("port" = String, Path, description = "Port")),
    request_body = PortReadBody,
    responses((status = 200, body = PortReadReply), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn read_out(
    State(app): State<Arc<AppState>>,
    path: TaskPortPath,
    JsonBody(body): JsonBody<PortReadBody>,
) -> Result<Json<PortReadReply>, ApiError> {
    read(&app, path, PortDirection::Out, body).await
}

async fn read(
    app: &AppState,
    TaskPortPath(task, port): TaskPortPath,
    direction: PortDirection,
    PortReadBody { count, default }: PortReadBody,
) -> Result<Json<PortReadReply>, ApiError> {
    if !(1..=READ_MAX).contains(&count) {
        return Err(ApiError::new(ProblemCode::Invalid, format!("`count` must be from 1 to {READ_MAX}")));
    }
    let tasks = task_store(app)?;
    let port = PortTarget::new(find(&*tasks, &task).await?.id, direction, port);
    let items = pop(&*tasks, TaskAct::Pop { port, count, or_default: default }).await?;
    Ok(Json(PortReadReply { items: items.iter().map(PortItemValue::from).collect() }))
}

/// Commits an act that takes items, and returns them.
async fn pop(tasks: &dyn TaskStore, act: TaskAct) -> Result<Vec<PortItem>, ApiError> {
    match commit_acts(tasks, vec![act]).await?.into_iter().next() {
        Some(ActOutcome::Items(items)) => Ok(items),
        _ => Err(ApiError::new(ProblemCode::Internal, "the store returned no items for a read")),
    }
}

/// Replace the ports of a task
#[utoipa::path(post, path = "/api/v1/tasks/{id}/ports", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias")),
    request_body = TaskPortsBody,
    responses((status = 200, body = TaskDetail), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn replace(
    State(app): State<Arc<AppState>>,
    PathSegment(id): PathSegment,
    JsonBody(TaskPortsBody { inports, outports }): JsonBody<TaskPortsBody>,
) -> Result<Json<TaskDetail>, ApiError> {
    let tasks = task_store(&app)?;
    let id = find(&*tasks, &id).await?.id;
    let mut acts = Vec::new();
    for (direction, what, ports) in
        [(PortDirection::In, "inports", inports), (PortDirection::Out, "outports", outports)]
    {
        if let Some(ports) = ports {
            acts.push(TaskAct::SetPorts { task: target(id), direction, ports: port_map(what, &ports)? });
        }
    }
    commit_acts(&*tasks, acts).await?;
    detail(&*tasks, id).await
}

/// Move the values of a port to other ports
///
/// All values and the default move in one commit; each of the other ports gets all of them.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/connect", tag = "tasks",
    params(("id" = String, Path, description = "Task: its id or an alias")),
    request_body = ConnectBody,
    responses((status = 200, body = ConnectReply), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn connect(
    State(app): State<Arc<AppState>>,
    PathSegment(id): PathSegment,
    JsonBody(body): JsonBody<ConnectBody>,
) -> Result<Json<ConnectReply>, ApiError> {
    let tasks = task_store(&app)?;
    let from = port_target(find(&*tasks, &id).await?.id, &body.direction, &body.port)?;
    if body.to.is_empty() {
        return Err(ApiError::new(ProblemCode::Invalid, "`to` has no ports"));
    }
    let mut to = Vec::with_capacity(body.to.len());
    for place in &body.to {
        to.push(port_target(find_named(&*tasks, &place.task).await?.id, &place.direction, &place.port)?);
    }
    let moved = pop(&*tasks, TaskAct::Connect { from, to }).await?.len() as u64;
    Ok(Json(ConnectReply { moved }))
}

fn port_target(task: TaskId, direction: &str, port: &str) -> Result<PortTarget, ApiError> {
    let direction = match direction {
        "in" => PortDirection::In,
        "out" => PortDirection::Out,
        _ => return Err(ApiError::new(ProblemCode::Invalid, "`direction` must be `in` or `out`")),
    };
    Ok(PortTarget::new(task, direction, valid("port", PortName::parse(port))?))
}

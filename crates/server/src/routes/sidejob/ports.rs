//! Reads and writes of ports in SideJob's interface.

use std::sync::Arc;

use axum::extract::{Path, State};
use cronhold_api::Problem;
use cronhold_core::task::limits::MOVED_ITEMS_MAX;
use cronhold_core::task::{
    ActOutcome, JsonObject, JsonText, PortDirection, PortItem, PortName, PortTarget, TaskAct, TaskId,
};

use super::{SideJobBody, SideJobError, SideJobProblem, SideJobReply, SideJobResult, find};
use crate::AppState;
use crate::routes::tasks::task_store;

/// The variable parts of a path: the job, `inports` or `outports`, and the port.
pub(crate) type PortPath = Path<(String, String, String)>;

/// Take a value from a port
///
/// Takes one value, or returns the default.
#[utoipa::path(post, path = "/sidejob/jobs/{job}/{ports}/{port}/read", tag = "sidejob",
    params(("job" = String, Path, description = "Job: its id or an alias"), ("ports" = String, Path, description = "`inports` or `outports`"), ("port" = String, Path, description = "Port")),
    request_body = Option<Value>,
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn read(State(app): State<Arc<AppState>>, path: PortPath, body: SideJobBody) -> SideJobResult {
    let items = pop(&app, path, &body, 1, true).await?;
    let item = items.first().map_or_else(|| JsonObject::new().to_json(), item_text);
    Ok(SideJobReply(item))
}

/// Take all values from a port
///
/// Takes all values, but not the default.
#[utoipa::path(post, path = "/sidejob/jobs/{job}/{ports}/{port}/entries", tag = "sidejob",
    params(("job" = String, Path, description = "Job: its id or an alias"), ("ports" = String, Path, description = "`inports` or `outports`"), ("port" = String, Path, description = "Port")),
    request_body = Option<Value>,
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn entries(State(app): State<Arc<AppState>>, path: PortPath, body: SideJobBody) -> SideJobResult {
    let items = pop(&app, path, &body, MOVED_ITEMS_MAX as u64, false).await?;
    let items: Vec<JsonText> = items.iter().map(item_text).collect();
    Ok(SideJobReply(JsonObject::new().with("entries", JsonText::list(&items)).to_json()))
}

/// Write values to a port
///
/// Writes `data`, or each value of `list`.
#[utoipa::path(post, path = "/sidejob/jobs/{job}/{ports}/{port}/write", tag = "sidejob",
    params(("job" = String, Path, description = "Job: its id or an alias"), ("ports" = String, Path, description = "`inports` or `outports`"), ("port" = String, Path, description = "Port")),
    request_body = Option<Value>,
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn write(State(app): State<Arc<AppState>>, path: PortPath, body: SideJobBody) -> SideJobResult {
    let values = match (body.field("list"), body.0.get("data")) {
        (Some(list), _) => list.to::<Vec<JsonText>>()?,
        (None, Some(data)) => vec![data.clone()],
        (None, None) => return Err(SideJobError::missing("data")),
    };
    let context = body.context();
    let item = |data| match context.is_empty() {
        true => PortItem::new(data),
        false => PortItem::new(data).with_context(context.clone()),
    };
    let items = values.into_iter().map(item).collect();
    let (job, port) = port_of(&app, path).await?;
    let act = TaskAct::Write { port, items, as_default: false, notify: true };
    body.commit(&*task_store(&app)?, Some(job), vec![act]).await?;
    Ok(SideJobReply::null())
}

async fn pop(
    app: &AppState,
    path: PortPath,
    body: &SideJobBody,
    count: u64,
    or_default: bool,
) -> Result<Vec<PortItem>, SideJobError> {
    let (job, port) = port_of(app, path).await?;
    let outcomes = body.commit(&*task_store(app)?, Some(job), vec![TaskAct::Pop { port, count, or_default }]).await?;
    match outcomes.into_iter().next() {
        Some(ActOutcome::Items(items)) => Ok(items),
        _ => Err(SideJobError("the store returned no items for a read".to_owned())),
    }
}

async fn port_of(app: &AppState, Path((job, ports, port)): PortPath) -> Result<(TaskId, PortTarget), SideJobError> {
    let job = find(&*task_store(app)?, &job).await?;
    let direction = match ports.as_str() {
        "inports" => PortDirection::In,
        "outports" => PortDirection::Out,
        _ => return Err(SideJobError(format!("a job has inports and outports, not `{ports}`"))),
    };
    Ok((job, PortTarget::new(job, direction, PortName::parse(&port)?)))
}

fn item_text(item: &PortItem) -> JsonText {
    let context = item.context.clone().unwrap_or_default();
    JsonObject::new().with("data", item.data.clone()).with("context", context.to_json()).to_json()
}

//! Queues with their classes, worker processes, and the registration of classes by HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::{get, post};
use axum::{Json, Router};
use cronhold_api::{ClassesBody, Problem, ProblemCode, QueueReport, WorkerReport};
use cronhold_core::task::{ClassConfig, ClassName, QueueName};
use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;
use cronhold_store::tasks::{ProcessId, ProcessSignal, TaskStore, WorkerProcess};

use super::pauses::EmptyBody;
use super::tasks::{task_store, valid};
use crate::AppState;
use crate::extract::{JsonBody, PathSegment};
use crate::problem::ApiError;

/// Longest id of a worker that registers by HTTP, in bytes.
const WORKER_ID_MAX: usize = 200;
/// Classes that a worker registers by HTTP.
const CLASSES_MAX: usize = 1_000;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/v1/queues", get(queues))
        .route("/api/v1/queues/{queue}/classes", post(register))
        .route("/api/v1/workers", get(workers))
        .route("/api/v1/workers/{id}/quiet", post(quiet))
        .route("/api/v1/workers/{id}/stop", post(stop))
}

/// List the queues with their classes
#[utoipa::path(get, path = "/api/v1/queues", tag = "workers",
    responses((status = 200, body = [QueueReport]), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn queues(State(app): State<Arc<AppState>>) -> Result<Json<Vec<QueueReport>>, ApiError> {
    let tasks = task_store(&app)?;
    let processes = tasks.processes().await?;
    let mut reports = Vec::new();
    for summary in tasks.queues().await? {
        reports.push(queue_report(&*tasks, &summary.queue, summary.ready, &processes).await?);
    }
    Ok(Json(reports))
}

async fn queue_report(
    tasks: &dyn TaskStore,
    queue: &QueueName,
    ready: u64,
    processes: &[WorkerProcess],
) -> Result<QueueReport, ApiError> {
    let classes = tasks.classes(queue).await?;
    let classes: BTreeMap<_, _> = classes.into_iter().map(|(name, config)| (name.to_string(), config.text)).collect();
    let workers = processes.iter().filter(|process| process.queue == *queue).count() as u64;
    Ok(QueueReport { queue: queue.to_string(), ready, workers, classes })
}

/// The queue in a path.
#[derive(Debug)]
pub(crate) struct QueuePath(QueueName);

impl<S: Send + Sync> FromRequestParts<S> for QueuePath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let PathSegment(text) = PathSegment::from_request_parts(parts, state).await?;
        QueueName::parse(&text).map(Self).map_err(|error| ApiError::unreadable(ProblemCode::BadRequest, error))
    }
}

/// Register the classes of a worker
///
/// For workers that only use this API. The classes replace those that a worker with the same id registered before, and
/// stay registered for a day after that.
#[utoipa::path(post, path = "/api/v1/queues/{queue}/classes", tag = "workers",
    params(("queue" = String, Path, description = "Queue")),
    request_body = ClassesBody,
    responses((status = 200, body = QueueReport), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn register(
    State(app): State<Arc<AppState>>,
    QueuePath(queue): QueuePath,
    JsonBody(ClassesBody { classes, worker }): JsonBody<ClassesBody>,
) -> Result<Json<QueueReport>, ApiError> {
    let tasks = task_store(&app)?;
    if classes.len() > CLASSES_MAX {
        let message = format!("a worker can register at most {CLASSES_MAX} classes, these are {}", classes.len());
        return Err(ApiError::new(ProblemCode::Invalid, message));
    }
    let id = worker.unwrap_or_else(|| format!("http:{queue}"));
    if id.is_empty() || id.len() > WORKER_ID_MAX || id.chars().any(char::is_control) {
        let message = format!("`worker` must have 1 to {WORKER_ID_MAX} bytes without control characters");
        return Err(ApiError::new(ProblemCode::Invalid, message));
    }
    let configs = classes.iter().map(|(name, config)| {
        let name = ClassName::parse(name)?;
        Ok((name, ClassConfig::parse(config.as_str())?))
    });
    let configs: Vec<(ClassName, ClassConfig)> = valid("classes", configs.collect::<Result<_, TextError>>())?;
    let now = tasks.time().await?;
    let process = WorkerProcess {
        id: ProcessId::new(&id),
        queue: queue.clone(),
        classes: configs.iter().map(|(name, _)| name.clone()).collect(),
        concurrency: 1,
        started_at: now,
        beat_at: now,
        busy: 0,
        is_quiet: false,
        signals: Vec::new(),
    };
    tasks.register(process, configs).await?;
    let ready = tasks.queues().await?.into_iter().find(|summary| summary.queue == queue).map_or(0, |found| found.ready);
    let processes = tasks.processes().await?;
    Ok(Json(queue_report(&*tasks, &queue, ready, &processes).await?))
}

/// List the worker processes that are alive
#[utoipa::path(get, path = "/api/v1/workers", tag = "workers",
    responses((status = 200, body = [WorkerReport]), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn workers(State(app): State<Arc<AppState>>) -> Result<Json<Vec<WorkerReport>>, ApiError> {
    let processes = task_store(&app)?.processes().await?;
    let reports = processes.into_iter().map(|process| WorkerReport {
        id: process.id.to_string(),
        queue: process.queue.to_string(),
        classes: process.classes.iter().map(ToString::to_string).collect(),
        concurrency: process.concurrency,
        busy: process.busy,
        quiet: process.is_quiet,
        started_at: process.started_at,
        beat: process.beat_at,
        signals: process.signals.iter().map(|signal| signal.as_str().to_owned()).collect(),
    });
    Ok(Json(reports.collect()))
}

/// Make a worker process begin no further steps
///
/// The process receives the signal with its next heartbeat.
#[utoipa::path(post, path = "/api/v1/workers/{id}/quiet", tag = "workers",
    params(("id" = String, Path, description = "Id of the worker process")),
    responses((status = 204), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn quiet(
    State(app): State<Arc<AppState>>,
    PathSegment(id): PathSegment,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Result<StatusCode, ApiError> {
    signal(&app, &id, ProcessSignal::Quiet).await
}

/// Make a worker process finish its steps and exit
///
/// The process receives the signal with its next heartbeat.
#[utoipa::path(post, path = "/api/v1/workers/{id}/stop", tag = "workers",
    params(("id" = String, Path, description = "Id of the worker process")),
    responses((status = 204), (status = "4XX", body = Problem), (status = "5XX", body = Problem)))]
pub(crate) async fn stop(
    State(app): State<Arc<AppState>>,
    PathSegment(id): PathSegment,
    JsonBody(EmptyBody {}): JsonBody<EmptyBody>,
) -> Result<StatusCode, ApiError> {
    signal(&app, &id, ProcessSignal::Stop).await
}

async fn signal(app: &AppState, id: &str, signal: ProcessSignal) -> Result<StatusCode, ApiError> {
    match task_store(app)?.signal(&ProcessId::new(id), signal).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => {
            let message = format!("there is no worker `{}` that is alive", shortened(id));
            Err(ApiError::new(ProblemCode::NotFound, message).hint("`cronhold workers` lists those that are"))
        }
    }
}

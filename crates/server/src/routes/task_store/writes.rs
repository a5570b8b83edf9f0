//! Methods of the task store that change something and whose arguments or results are not those of the port as they are.

use axum::Json;
use axum::response::{IntoResponse, Response};
use cronhold_api::{
    CommitTasksBody, CommitTasksReply, EndBareJobsBody, EndBareJobsReply, HoldBareJobsBody, ProblemCode,
    RegisterWorkerBody, SignalWorkerBody, TaskUnitProblem, WorkerProcessBody,
};
use cronhold_store::tasks::TaskStore;

use super::reply;
use crate::problem::ApiError;

pub(super) async fn commit(store: &dyn TaskStore, body: CommitTasksBody) -> Response {
    let results = store.commit(body.units).await;
    let results: CommitTasksReply = results.into_iter().map(|result| result.map_err(TaskUnitProblem::from)).collect();
    Json(results).into_response()
}

pub(super) async fn register(store: &dyn TaskStore, body: &RegisterWorkerBody) -> Result<Response, ApiError> {
    let configs = body.configs().map_err(|error| ApiError::new(ProblemCode::Invalid, error))?;
    Ok(reply(store.register(body.process.clone(), configs).await))
}

pub(super) async fn deregister(store: &dyn TaskStore, body: WorkerProcessBody) -> Response {
    reply(store.deregister(&body.process).await)
}

pub(super) async fn signal(store: &dyn TaskStore, body: SignalWorkerBody) -> Response {
    reply(store.signal(&body.process, body.signal).await)
}

pub(super) async fn hold_bare_jobs(store: &dyn TaskStore, body: HoldBareJobsBody) -> Response {
    reply(store.hold_bare_jobs(&body.process, body.held, body.lease).await)
}

pub(super) async fn end_bare_jobs(store: &dyn TaskStore, body: EndBareJobsBody) -> Response {
    let results = store.end_bare_jobs(body.ends).await;
    let results: EndBareJobsReply = results.into_iter().map(|result| result.map_err(TaskUnitProblem::from)).collect();
    Json(results).into_response()
}

//! The task store for worker processes beside this daemon: one route, whose last segment names a method of the port for
//! tasks. A method that is called again and again needs no more than its arguments and its result, so the methods are not
//! resources of their own. `writes` has methods that change something, `reads` those that do not, and `waits` those
//! that wait.

mod reads;
#[cfg(test)]
mod tests;
mod waits;
mod writes;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use cronhold_api::{NoArguments, Problem, ProblemCode, TASK_STORE_BODY_MAX, TaskStoreCall, TaskStoreReply};
use cronhold_schedule::text::shortened;
use cronhold_store::Fault;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::AppState;
use crate::extract::{JsonBody, PathSegment};
use crate::problem::ApiError;

pub(crate) fn router() -> Router<Arc<AppState>> {
    let route = post(call).layer(DefaultBodyLimit::max(TASK_STORE_BODY_MAX));
    Router::new().route("/api/v1/task-store/{method}", route)
}

/// The arguments of a call, which its method reads.
struct CallArguments<'a> {
    app: &'a Arc<AppState>,
    request: Request,
}

impl CallArguments<'_> {
    async fn read<T: DeserializeOwned>(self) -> Result<T, ApiError> {
        JsonBody::from_request(self.request, self.app).await.map(|JsonBody(body)| body)
    }
}

/// Call a method of the task store
///
/// For `cronhold worker`, which may be no older than the daemon. Methods: `commit`, `lease`, `heartbeat`, `register`,
/// `deregister`, `signal`, `lease-bare-jobs`, `hold-bare-jobs`, `end-bare-jobs`, `find`, `window`, `items`, `child`,
/// `children`, `page`, `queues`, `classes`, `channels`, `processes`, `totals`, `next-due`, `time`; `arrivals` replies
/// when a queue has new tasks, or after 20 seconds; `listen` sends a JSON line for each message on the channels,
/// without end. The reply is `{"ok": RESULT}`, or `{"fault": {"kind": KIND, "message": TEXT}}` if the store
/// failed.
#[utoipa::path(post, path = "/api/v1/task-store/{method}", tag = "tasks", request_body = TaskStoreCall,
    params(("method" = String, Path, description = "Name of the method")),
    responses((status = 200, body = TaskStoreCall), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn call(
    State(app): State<Arc<AppState>>,
    PathSegment(method): PathSegment,
    request: Request,
) -> Result<Response, ApiError> {
    let store = app.store.task_store().ok_or_else(|| {
        ApiError::new(ProblemCode::Conflict, "the store of this daemon keeps no tasks")
            .hint("use a daemon on Redis or with the embedded SQLite store, which keep tasks")
    })?;
    let given = CallArguments { app: &app, request };
    let store = &*store;
    Ok(match method.as_str() {
        "commit" => writes::commit(store, given.read().await?).await,
        "lease" => reply(store.lease(given.read().await?).await),
        "heartbeat" => reply(store.heartbeat(given.read().await?).await),
        "register" => writes::register(store, &given.read().await?).await?,
        "deregister" => writes::deregister(store, given.read().await?).await,
        "signal" => writes::signal(store, given.read().await?).await,
        "lease-bare-jobs" => reply(store.lease_bare_jobs(given.read().await?).await),
        "hold-bare-jobs" => writes::hold_bare_jobs(store, given.read().await?).await,
        "end-bare-jobs" => writes::end_bare_jobs(store, given.read().await?).await,
        "find" => reads::find(store, given.read().await?).await,
        "window" => reads::window(store, given.read().await?).await,
        "items" => reads::items(store, given.read().await?).await,
        "child" => reads::child(store, given.read().await?).await,
        "children" => reads::children(store, given.read().await?).await,
        "page" => reads::page(store, given.read().await?).await,
        "queues" => {
            given.read::<NoArguments>().await?;
            reply(store.queues().await)
        }
        "classes" => reads::classes(store, given.read().await?).await,
        "channels" => reads::channels(store, given.read().await?).await,
        "processes" => {
            given.read::<NoArguments>().await?;
            reply(store.processes().await)
        }
        "totals" => {
            given.read::<NoArguments>().await?;
            reply(store.totals().await)
        }
        "next-due" => {
            given.read::<NoArguments>().await?;
            reply(store.next_due().await)
        }
        "time" => {
            given.read::<NoArguments>().await?;
            reply(store.time().await)
        }
        "arrivals" => waits::arrivals(store, given.read().await?).await,
        "listen" => waits::listen(store, given.read().await?).await?,
        _ => {
            let message = format!("the task store has no method `{}`", shortened(&method));
            return Err(ApiError::new(ProblemCode::NotFound, message)
                .hint("a worker must not be newer than the daemon that it uses"));
        }
    })
}

/// The response with the result of a method.
fn reply<T: Serialize>(result: Result<T, Fault>) -> Response {
    Json(TaskStoreReply::from(result)).into_response()
}

//! SideJob's own HTTP interface, for its clients: its paths, bodies and replies. Every error is 422 with a text. This
//! file has what all of its routes share.

pub(crate) mod jobs;
pub(crate) mod ports;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequest, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use cronhold_api::Problem;
use cronhold_core::task::log::{message_entry, object_entry};
use cronhold_core::task::{Channel, JsonObject, JsonText, TaskAct, TaskId, TaskKey, TaskUnit};
use cronhold_schedule::TextError;
use cronhold_schedule::text::shortened;
use cronhold_store::tasks::{TaskReceipt, TaskStore};
use utoipa::ToSchema;

use super::tasks::{commit, task_store};
use crate::AppState;
use crate::extract::whole;
use crate::problem::ApiError;

/// The version of SideJob whose interface this is.
const VERSION: &str = "4.1.0";

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route("/sidejob", get(version))
        .route("/sidejob/", get(version))
        .route("/sidejob/publish", post(publish))
        .route("/sidejob/log", post(log))
        .route("/sidejob/jobs", post(jobs::create))
        .route("/sidejob/jobs/{job}", get(jobs::show).delete(jobs::delete))
        .route("/sidejob/jobs/{job}/state", post(jobs::state))
        .route("/sidejob/jobs/{job}/ports", post(jobs::ports))
        .route("/sidejob/jobs/{job}/run", post(jobs::run))
        .route("/sidejob/jobs/{job}/terminate", post(jobs::terminate))
        .route("/sidejob/jobs/{job}/adopt", post(jobs::adopt))
        .route("/sidejob/jobs/{job}/disown", post(jobs::disown))
        .route("/sidejob/jobs/{job}/lock", post(locks))
        .route("/sidejob/jobs/{job}/refresh_lock", post(locks))
        .route("/sidejob/jobs/{job}/unlock", post(locks))
        .route("/sidejob/jobs/{job}/{ports}/{port}/read", post(ports::read))
        .route("/sidejob/jobs/{job}/{ports}/{port}/entries", post(ports::entries))
        .route("/sidejob/jobs/{job}/{ports}/{port}/write", post(ports::write))
}

/// An error of SideJob's interface.
#[derive(Debug)]
pub(crate) struct SideJobError(String);

/// An error response of SideJob's interface.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it only describes the response in the OpenAPI document")]
pub(crate) struct SideJobProblem {
    /// The error message.
    error: String,
}

impl SideJobError {
    fn missing(field: &str) -> Self {
        Self(format!("Missing {field}"))
    }
}

impl From<ApiError> for SideJobError {
    fn from(error: ApiError) -> Self {
        Self(error.problem.detail)
    }
}

impl From<TextError> for SideJobError {
    fn from(error: TextError) -> Self {
        Self(error.message)
    }
}

impl From<cronhold_store::Fault> for SideJobError {
    fn from(fault: cronhold_store::Fault) -> Self {
        Self(fault.to_string())
    }
}

impl IntoResponse for SideJobError {
    fn into_response(self) -> Response {
        let body = JsonObject::new().with("error", JsonText::of_text(&self.0)).to_json();
        (StatusCode::UNPROCESSABLE_ENTITY, SideJobReply(body)).into_response()
    }
}

/// A JSON text as the body of a response.
#[derive(Debug)]
pub(crate) struct SideJobReply(JsonText);

impl SideJobReply {
    /// The reply of a request that returns nothing.
    fn null() -> Self {
        Self(JsonText::null())
    }
}

impl IntoResponse for SideJobReply {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0.to_string()).into_response()
    }
}

pub(crate) type SideJobResult = Result<SideJobReply, SideJobError>;

/// The body of a request: a JSON object. Anything else is read as an empty one, as SideJob does.
#[derive(Debug)]
pub(crate) struct SideJobBody(JsonObject);

impl<S: Send + Sync> FromRequest<S> for SideJobBody {
    type Rejection = SideJobError;

    async fn from_request(request: Request, state: &S) -> Result<Self, SideJobError> {
        let bytes = whole(request, state).await?;
        let text = std::str::from_utf8(&bytes).unwrap_or_default();
        Ok(Self(JsonObject::parse(text).unwrap_or_default()))
    }
}

impl SideJobBody {
    /// A field that is not `null`.
    fn field(&self, name: &str) -> Option<&JsonText> {
        self.0.get(name).filter(|value| value.as_str() != "null")
    }

    /// A text; numbers count as texts, as in Ruby's strings of ids.
    fn text(&self, name: &str) -> Option<String> {
        let value = self.field(name)?;
        Some(value.to::<String>().unwrap_or_else(|_| value.to_string()))
    }

    fn required(&self, name: &str) -> Result<String, SideJobError> {
        self.text(name).ok_or_else(|| SideJobError::missing(name))
    }

    fn flag(&self, name: &str) -> bool {
        self.field(name).is_some_and(|value| value.as_str() != "false")
    }

    /// A number of seconds.
    fn seconds(&self, name: &str) -> Result<Option<f64>, SideJobError> {
        self.field(name).map(JsonText::to).transpose().map_err(SideJobError::from)
    }

    /// The context of what the request writes.
    fn context(&self) -> JsonObject {
        self.field("context").and_then(|context| JsonObject::parse(context.as_str()).ok()).unwrap_or_default()
    }

    /// The unit of a request on a job: its acts, and then the run that the body requests.
    fn unit(&self, job: Option<TaskId>, mut acts: Vec<TaskAct>) -> TaskUnit {
        if let (Some(job), Some(run)) = (job, self.field("run")) {
            let run = Self(JsonObject::parse(run.as_str()).unwrap_or_default());
            let (task, forced) = (super::tasks::target(job), run.flag("force"));
            acts.push(match run.flag("parent") {
                true => TaskAct::RunParent { task, forced, at: None },
                false => TaskAct::Run { task, forced, at: None },
            });
        }
        TaskUnit { context: self.context(), ..TaskUnit::request(acts) }
    }

    /// Commits the unit of a request, and returns what its acts returned.
    async fn commit(
        &self,
        tasks: &dyn TaskStore,
        job: Option<TaskId>,
        acts: Vec<TaskAct>,
    ) -> Result<Vec<cronhold_core::task::ActOutcome>, SideJobError> {
        match commit(tasks, self.unit(job, acts)).await? {
            TaskReceipt::Committed(outcomes) => Ok(outcomes),
            TaskReceipt::Repeated(_) => Ok(Vec::new()),
        }
    }
}

/// Finds a job by its id or an alias.
async fn find(tasks: &dyn TaskStore, job: &str) -> Result<TaskId, SideJobError> {
    let unknown = || SideJobError(format!("Job {} does not exist", shortened(job)));
    let key = TaskKey::parse(job).map_err(|_| unknown())?;
    Ok(tasks.find(&key).await?.ok_or_else(unknown)?.id)
}

/// An object of these fields.
fn object(fields: BTreeMap<&str, JsonText>) -> SideJobReply {
    SideJobReply(fields.into_iter().fold(JsonObject::new(), |all, (name, value)| all.with(name, value)).to_json())
}

/// Get the version of SideJob whose interface this is
#[utoipa::path(get, path = "/sidejob", tag = "sidejob",
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn version() -> SideJobReply {
    object([("version", JsonText::of_text(VERSION))].into())
}

/// Publish a message
#[utoipa::path(post, path = "/sidejob/publish", tag = "sidejob",
    request_body = Option<Value>,
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn publish(State(app): State<Arc<AppState>>, body: SideJobBody) -> SideJobResult {
    let channel = Channel::parse(&body.required("channel")?)?;
    let message = body.0.get("message").cloned().unwrap_or_else(JsonText::null);
    body.commit(&*task_store(&app)?, None, vec![TaskAct::Publish { channel, message }]).await?;
    Ok(SideJobReply::null())
}

/// Write a log entry
#[utoipa::path(post, path = "/sidejob/log", tag = "sidejob",
    request_body = Option<Value>,
    responses((status = 200, body = Value), (status = 422, body = SideJobProblem), (status = "4XX", body = Problem)))]
pub(crate) async fn log(State(app): State<Arc<AppState>>, body: SideJobBody) -> SideJobResult {
    let tasks = task_store(&app)?;
    let entry = body.field("entry").ok_or_else(|| SideJobError::missing("entry"))?;
    let now = tasks.time().await?;
    let message = match JsonObject::parse(entry.as_str()) {
        Ok(fields) => object_entry(&body.context(), now, &fields),
        Err(_) => message_entry(&body.context(), now, &entry.to::<String>().unwrap_or_else(|_| entry.to_string())),
    };
    body.commit(&*tasks, None, vec![TaskAct::Publish { channel: Channel::log(), message }]).await?;
    Ok(SideJobReply::null())
}

/// Locks of clients do not exist: a request is one commit, and needs none.
async fn locks() -> SideJobError {
    SideJobError("locks are not supported; every request and every step is one commit without them".to_owned())
}

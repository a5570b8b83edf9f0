//! Accepts control events of Cronken over HTTP, for clients that cannot publish them to Redis. Each event has the
//! effect of the corresponding request of the API. Unlike with Redis, the client receives the result.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use cronhold_api::{ControlEvent, CreatedRun, Problem, ProblemCode};
use cronhold_core::command::{Command, Precondition};
use cronhold_core::decision::Rejection;
use cronhold_core::record::{Actor, JobSource};
use cronhold_core::{Job, JobId};
use cronhold_cronken::definition::{self, Dialect, ReadOptions};
use cronhold_cronken::event::{CronkenEvent, resume_all};
use cronhold_jobfile::foreign::ForeignForm;

use super::job_put::new_uid;
use super::jobs::find;
use super::triggers::receive;
use crate::AppState;
use crate::caller::RequestIdentity;
use crate::describe::JobFileMistakes;
use crate::extract::JsonBody;
use crate::find_node::find_node;
use crate::problem::ApiError;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/control", post(control))
}

/// Apply a control event of Cronken
#[utoipa::path(post, path = "/api/v1/control", tag = "control", request_body = ControlEvent,
    responses(
        (status = 201, description = "The run that a `trigger` created", body = CreatedRun),
        (status = 204, description = "Applied; the batching policy of the job decides about the run of a `trigger`"),
        (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn control(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    JsonBody(event): JsonBody<ControlEvent>,
) -> Result<Response, ApiError> {
    let read = CronkenEvent::from_action(&event.action, &event.args);
    let event = read.map_err(|error| ApiError::unreadable(ProblemCode::Invalid, error))?;
    match event.command(app.node.random_run_id()) {
        Some(Command::Trigger { job, args, trigger, message, id }) => {
            let command = Command::Trigger { job: job.clone(), args, trigger: trigger.clone(), message, id };
            let (_, Json(receipt)) = receive(&app, actor, command, &job, trigger.to_string()).await?;
            let created =
                receipt.run.zip(receipt.number).map(|(id, number)| CreatedRun { id, job: receipt.job, number });
            return Ok(match created {
                Some(created) => (StatusCode::CREATED, Json(created)).into_response(),
                // The job's batching policy decides about the run.
                None => StatusCode::NO_CONTENT.into_response(),
            });
        }
        Some(command) => {
            app.ensure(actor, command).await?;
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        None => {}
    }
    match event {
        CronkenEvent::Add(id, form) => {
            let job = Arc::new(read_job(&app, &form)?);
            let (uid, provided) = (new_uid(&app), Precondition::New);
            app.ensure(actor, Command::PutJob { id, job, source: JobSource::Api, uid, provided }).await?;
        }
        CronkenEvent::Resume(None) => resume_all(&app.node, &*app.store, &actor).await?,
        CronkenEvent::Validate(names) => validate(&app, &names).await?,
        CronkenEvent::Drain(names) => drain(&app, actor, &names).await?,
        _ => drop(app.files.reload().await),
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Drains the nodes with these names. If one of them does not exist, none is drained.
async fn drain(app: &AppState, actor: Actor, names: &[String]) -> Result<(), ApiError> {
    let mut nodes = Vec::with_capacity(names.len());
    for name in names {
        nodes.push(find_node(&*app.store, name).await?.id);
    }
    for node in nodes {
        app.ensure(actor.clone(), Command::Drain { node, on: true }).await?;
    }
    Ok(())
}

/// Validates jobs. Stored jobs are valid; only job files and shared definitions can have mistakes.
async fn validate(app: &AppState, names: &[String]) -> Result<(), ApiError> {
    let mistakes = JobFileMistakes::now(app);
    let ids = names.iter().map(|name| JobId::parse(name)).collect::<Result<Vec<JobId>, _>>();
    let ids = ids.map_err(|error| ApiError::unreadable(ProblemCode::Invalid, error))?;
    let mut wrong = Vec::new();
    for (id, found) in &mistakes.of_jobs {
        if ids.is_empty() || ids.contains(id) {
            wrong.extend(found.iter().map(|at| format!("{}:{}:{}: {}", at.file, at.line, at.column, at.message)));
        }
    }
    if !wrong.is_empty() {
        return Err(ApiError::new(ProblemCode::Invalid, wrong.join("\n")));
    }
    for id in ids {
        find(app, &id).await?.ok_or(Rejection::NoJob(id))?;
    }
    Ok(())
}

/// Reads the job of an `add` event.
fn read_job(app: &AppState, form: &ForeignForm) -> Result<Job, ApiError> {
    let world = (app.world)();
    let options = ReadOptions { zones: &world.zones, dialect: Dialect::Cron };
    let read = definition::read_form(form, &options);
    let wrong = || read.mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    read.job.clone().ok_or_else(|| ApiError::new(ProblemCode::Invalid, wrong()))
}

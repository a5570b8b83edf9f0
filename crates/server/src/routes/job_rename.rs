//! Renames a job. One command renames it; then the request moves its finished runs and outcomes, a limited number in each
//! command. If the request is interrupted, the node's walk through the store moves the rest.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use cronhold_api::{JobUse, Problem, ProblemCode, RenameBody, RenamedJob};
use cronhold_core::command::Command;
use cronhold_core::decide::RENAMED_PENDING_MAX;
use cronhold_core::decision::Rejection;
use cronhold_core::record::{Actor, JobState, Record, RecordKey, RenameProgress};
use cronhold_core::{JobId, State as RunState};
use cronhold_engine::{RequestError, next_history_moves};
use cronhold_jobfile::directory::named_jobs;
use cronhold_store::{Fault, Query, RunQuery};

use crate::AppState;
use crate::caller::RequestIdentity;
use crate::extract::{JobIdPath, JsonBody};
use crate::problem::ApiError;

/// How often the command is sent if runs of the job are created meanwhile.
const TRIES_MAX: usize = 5;
/// Jobs that are read in one page.
const PAGE: usize = 1_000;
/// Maximum number of jobs that are searched for the old name.
const JOBS_MAX: usize = 200_000;
/// Maximum number of places in a response.
const USES_MAX: usize = 200;

pub(crate) fn router() -> Router<Arc<AppState>> {
    Router::new().route("/api/v1/jobs/{id}/rename", post(rename))
}

/// Rename a job
///
/// The job keeps its runs, their numbers, its pauses and the outcomes that conditions of other jobs read. Jobs that name
/// it are not changed; the response lists them. The job must not come from a job file, and have no run whose program has
/// started.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/rename", tag = "jobs",
    params(("id" = String, Path, description = "Job id")),
    request_body = RenameBody,
    responses((status = 200, body = RenamedJob), (status = "4XX", body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn rename(
    State(app): State<Arc<AppState>>,
    RequestIdentity(actor): RequestIdentity,
    JobIdPath(from): JobIdPath,
    JsonBody(RenameBody { to }): JsonBody<RenameBody>,
) -> Result<Json<RenamedJob>, ApiError> {
    let to = JobId::parse(&to).map_err(|error| ApiError::unreadable(ProblemCode::Invalid, error))?;
    let sent = send(&app, &actor, &from, &to).await;
    let is_gone = matches!(&sent, Err(RequestError::Rejected(Rejection::NoJob(_))));
    // An earlier request may have been interrupted after its first command.
    if !is_gone || !is_under_way(&app, &from, &to).await? {
        sent?;
    }
    let moved = move_history(&app, &actor, &from, &to).await?;
    let named_by = uses_of(&app, &from).await?;
    Ok(Json(RenamedJob { job: to.to_string(), moved, named_by }))
}

/// Sends the command that renames the job, with the runs that no set of the job names.
async fn send(app: &AppState, actor: &Actor, from: &JobId, to: &JobId) -> Result<(), RequestError> {
    for _ in 1..TRIES_MAX {
        match send_once(app, actor, from, to).await {
            Err(RequestError::Rejected(Rejection::RunsCreated(_))) => {}
            sent => return sent,
        }
    }
    send_once(app, actor, from, to).await
}

async fn send_once(app: &AppState, actor: &Actor, from: &JobId, to: &JobId) -> Result<(), RequestError> {
    // Before the list: a run that is created in between changes the number.
    let next_number = state_of(app, from).await?.map_or(1, |state| state.next_number);
    let query = RunQuery { job: Some(from.clone()), states: vec![RunState::Scheduled], ..RunQuery::default() };
    let page = app.store.page(&Query::Runs(query), RENAMED_PENDING_MAX + 1).await?;
    let scheduled = page.records.iter().filter_map(|stored| stored.record.key().run_list_id()).collect();
    let command = Command::RenameJob { from: from.clone(), to: to.clone(), scheduled, next_number };
    app.request(actor.clone(), command).await.map(drop)
}

/// Whether the job has its new name already, and its history moves.
async fn is_under_way(app: &AppState, from: &JobId, to: &JobId) -> Result<bool, Fault> {
    let state = state_of(app, to).await?;
    Ok(state.is_some_and(|state| state.renaming == Some(RenameProgress::From(from.clone()))))
}

async fn state_of(app: &AppState, job: &JobId) -> Result<Option<Arc<JobState>>, Fault> {
    let found = app.store.load(&[RecordKey::JobState(job.clone())]).await?;
    Ok(found.into_iter().flatten().find_map(|stored| match stored.record {
        Record::JobState(state) => Some(state),
        _ => None,
    }))
}

/// Moves the finished runs and outcomes, and returns their number.
async fn move_history(app: &AppState, actor: &Actor, from: &JobId, to: &JobId) -> Result<u64, ApiError> {
    let mut moved = 0;
    loop {
        for command in next_history_moves(&*app.store, from, to, 1).await? {
            let count = match &command {
                Command::MoveHistory { keys, .. } => keys.len() as u64,
                _ => 0,
            };
            app.request(actor.clone(), command).await?;
            moved += count;
            if count == 0 {
                return Ok(moved);
            }
        }
    }
}

/// The places where jobs name another one.
async fn uses_of(app: &AppState, name: &JobId) -> Result<Vec<JobUse>, Fault> {
    let (mut uses, mut after, mut seen) = (Vec::new(), None, 0);
    while seen < JOBS_MAX && uses.len() < USES_MAX {
        let page = app.store.page(&Query::Jobs { after }, PAGE).await?;
        seen += page.len();
        for stored in &page.records {
            let Record::Job(job) = &stored.record else { continue };
            let named = named_jobs(&job.job).into_iter().filter(|(_, named)| named == name);
            uses.extend(named.map(|(key, _)| JobUse { job: job.id.to_string(), key }));
        }
        after = match page.next(PAGE) {
            Some(RecordKey::Job(last)) => Some(last),
            _ => break,
        };
    }
    uses.truncate(USES_MAX);
    Ok(uses)
}

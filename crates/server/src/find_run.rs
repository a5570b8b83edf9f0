//! Finds a run by its id, by `job#number`, or by its job. A job id means its latest run that is not scheduled for
//! later: the output of `backup` is not that of the run that is scheduled for tomorrow, unless there is no other run.

use std::sync::Arc;

use cronhold_api::ProblemCode;
use cronhold_core::decision::Rejection;
use cronhold_core::record::{Record, RecordKey, Run, StoredRecord};
use cronhold_core::{JobId, RunId, RunNumber, RunRef, State};
use cronhold_store::{Fault, Query, RunQuery, Store};

use crate::problem::ApiError;

/// Number of runs per page in the search for the latest one.
const PAGE: usize = 20;
/// Maximum number of pages in the search. If a job has more scheduled runs than that, the search returns one of them.
const PAGES_MAX: usize = 50;

/// Finds a run by its id, by `job#number`, or by its job.
pub(crate) async fn find_run(store: &dyn Store, name: &str) -> Result<Arc<Run>, ApiError> {
    match RunRef::parse(name).map_err(|error| ApiError::unreadable(ProblemCode::BadRequest, error))? {
        RunRef::Id(id) => load_run(store, id).await?.ok_or_else(|| Rejection::NoRun(id).into()),
        RunRef::Numbered(job, number) => numbered(store, &job, number).await,
        RunRef::Latest(job) => match latest_run(store, &job).await? {
            Some(run) => Ok(run),
            None => Err(no_run(store, job).await?),
        },
    }
}

/// Loads a run by its id.
pub(crate) async fn load_run(store: &dyn Store, id: RunId) -> Result<Option<Arc<Run>>, Fault> {
    Ok(store.load(&[RecordKey::Run(id)]).await?.into_iter().flatten().find_map(run_of))
}

/// The latest run of a job that is not scheduled, or else the latest scheduled one; `None` if the job has no runs.
pub(crate) async fn latest_run(store: &dyn Store, job: &JobId) -> Result<Option<Arc<Run>>, Fault> {
    let mut query = RunQuery { job: Some(job.clone()), ..RunQuery::default() };
    let mut scheduled = None;
    for page in 0..PAGES_MAX {
        // Usually the first run is the result.
        let limit = if page == 0 { 1 } else { PAGE };
        let found = store.page(&Query::Runs(query.clone()), limit).await?;
        let next = found.next(limit);
        for run in found.records.into_iter().filter_map(run_of) {
            if run.state != State::Scheduled {
                return Ok(Some(run));
            }
            scheduled.get_or_insert(run);
        }
        match next {
            Some(RecordKey::Run(last)) => query.before = Some(last),
            _ => break,
        }
    }
    Ok(scheduled)
}

/// The run in a stored record; `None` if it is another kind of record.
pub(crate) fn run_of(stored: StoredRecord) -> Option<Arc<Run>> {
    match stored.record {
        Record::Run(run) => Some(run),
        _ => None,
    }
}

async fn numbered(store: &dyn Store, job: &JobId, number: RunNumber) -> Result<Arc<Run>, ApiError> {
    let query = RunQuery { job: Some(job.clone()), number: Some(number), ..RunQuery::default() };
    let found = store.page(&Query::Runs(query), 1).await?;
    match found.records.into_iter().find_map(run_of) {
        Some(run) => Ok(run),
        None if is_job(store, job).await? => {
            Err(ApiError::new(ProblemCode::NotFound, format!("there is no run `{job}#{number}`"))
                .hint("`cronhold runs` shows the runs; old ones are not kept"))
        }
        None => Err(no_run(store, job.clone()).await?),
    }
}

/// The error for a job without runs, or for a job that does not exist.
async fn no_run(store: &dyn Store, job: JobId) -> Result<ApiError, Fault> {
    Ok(match is_job(store, &job).await? {
        true => ApiError::new(ProblemCode::NotFound, format!("the job `{job}` has no run yet"))
            .hint(format!("`cronhold run {job}` starts one, `cronhold why {job}` shows when the next one is due")),
        false => Rejection::NoJob(job).into(),
    })
}

/// Whether a job exists.
pub(crate) async fn is_job(store: &dyn Store, job: &JobId) -> Result<bool, Fault> {
    Ok(store.load(&[RecordKey::Job(job.clone())]).await?.iter().any(Option::is_some))
}

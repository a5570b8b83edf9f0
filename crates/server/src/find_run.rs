//! Finds a run by its id, by `job#number`, or by its job. A job id means its latest run that is not scheduled for
//! later: the output of `backup` is not that of the run that is scheduled for tomorrow, unless there is no other run.

use std::sync::Arc;

use cronhold_api::ProblemCode;
use cronhold_core::decision::Rejection;
use cronhold_core::record::{Record, RecordKey, Run, SkipSpan, StoredRecord};
use cronhold_core::{JobId, NodeId, RunId, RunNumber, RunRef, State};
use cronhold_store::{Fault, Query, RunQuery, Store};

use crate::problem::ApiError;

/// Number of runs per page in the search for the latest one.
const PAGE: usize = 20;
/// Maximum number of pages in the search. If a job has more scheduled runs than that, the search returns one of them.
const PAGES_MAX: usize = 50;

/// An entry of a list of runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ListedRun {
    /// A run.
    Run(Arc<Run>),
    /// A span of skips.
    SkipSpan(Arc<SkipSpan>),
}

impl ListedRun {
    /// The run or the span of skips in a stored record; `None` if it is another kind of record.
    pub(crate) fn of(stored: StoredRecord) -> Option<Self> {
        match stored.record {
            Record::Run(run) => Some(Self::Run(run)),
            Record::SkipSpan(span) => Some(Self::SkipSpan(span)),
            _ => None,
        }
    }

    /// The run; for a span, the skipped run that represents it in responses.
    pub(crate) fn to_run(&self) -> Arc<Run> {
        match self {
            Self::Run(run) => Arc::clone(run),
            Self::SkipSpan(span) => Arc::new(span.to_listed_run()),
        }
    }

    /// The node that has or had its program; `None` for a span.
    pub(crate) fn node(&self) -> Option<NodeId> {
        match self {
            Self::Run(run) => Some(run.owner?.node),
            Self::SkipSpan(_) => None,
        }
    }
}

/// Finds a run by its id, by `job#number`, or by its job. Rejects a span of skips: no operation applies to it.
pub(crate) async fn find_run(store: &dyn Store, name: &str) -> Result<Arc<Run>, ApiError> {
    match find_listed_run(store, name).await? {
        ListedRun::Run(run) => Ok(run),
        ListedRun::SkipSpan(span) => {
            let message = format!("run {} stands for occurrences that were skipped, and is not one run", span.id);
            Err(ApiError::new(ProblemCode::Conflict, message).hint("`cronhold backfill` runs a stretch of occurrences"))
        }
    }
}

/// Finds a run or a span of skips by its id, by `job#number`, or by its job.
pub(crate) async fn find_listed_run(store: &dyn Store, name: &str) -> Result<ListedRun, ApiError> {
    match RunRef::parse(name).map_err(|error| ApiError::unreadable(ProblemCode::BadRequest, error))? {
        RunRef::Id(id) => {
            let found = store.load(&[RecordKey::Run(id), RecordKey::SkipSpan(id)]).await?;
            found.into_iter().flatten().find_map(ListedRun::of).ok_or_else(|| Rejection::NoRun(id).into())
        }
        RunRef::Numbered(job, number) => numbered(store, &job, number).await,
        RunRef::Latest(job) => match latest_run(store, &job).await? {
            Some(run) => Ok(run),
            None => Err(no_run(store, job).await?),
        },
    }
}

/// Loads a run by its id.
pub(crate) async fn load_run(store: &dyn Store, id: RunId) -> Result<Option<Arc<Run>>, Fault> {
    Ok(store.load(&[RecordKey::Run(id)]).await?.into_iter().flatten().find_map(|stored| match stored.record {
        Record::Run(run) => Some(run),
        _ => None,
    }))
}

/// The latest run or span of skips of a job that is not scheduled, or else the latest scheduled run; `None` if the job
/// has neither.
pub(crate) async fn latest_run(store: &dyn Store, job: &JobId) -> Result<Option<ListedRun>, Fault> {
    let mut query = RunQuery { job: Some(job.clone()), ..RunQuery::default() };
    let mut scheduled = None;
    for page in 0..PAGES_MAX {
        // Usually the first run is the result.
        let limit = if page == 0 { 1 } else { PAGE };
        let found = store.page(&Query::Runs(query.clone()), limit).await?;
        let next = found.next(limit);
        for listed in found.records.into_iter().filter_map(ListedRun::of) {
            if !matches!(&listed, ListedRun::Run(run) if run.state == State::Scheduled) {
                return Ok(Some(listed));
            }
            scheduled.get_or_insert(listed);
        }
        match next.and_then(|key| key.run_list_id()) {
            Some(last) => query.before = Some(last),
            None => break,
        }
    }
    Ok(scheduled)
}

async fn numbered(store: &dyn Store, job: &JobId, number: RunNumber) -> Result<ListedRun, ApiError> {
    let query = RunQuery { job: Some(job.clone()), number: Some(number), ..RunQuery::default() };
    let found = store.page(&Query::Runs(query), 1).await?;
    match found.records.into_iter().find_map(ListedRun::of) {
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

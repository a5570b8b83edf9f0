//! From what someone calls a run to the run. A job's name stands for its latest run that has begun, was skipped or waits
//! for something else than its time: who asks for the output of `backup` does not mean the run that is planned for
//! tomorrow, unless there is no other.

use std::sync::Arc;

use cronhold_api::ProblemCode;
use cronhold_core::decision::Rejection;
use cronhold_core::record::{Record, RecordKey, Run, SkipSpan, StoredRecord};
use cronhold_core::{JobId, NodeId, RunId, RunNumber, RunRef, State};
use cronhold_store::{Fault, Query, RunQuery, Store};

use crate::problem::ApiError;

/// Runs that are looked at in one page for the latest one.
const PAGE: usize = 20;
/// Pages that are looked at. A job with more runs in the future has no latest one that anybody could mean.
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
    /// The entry of a list's record.
    pub(crate) fn of(stored: StoredRecord) -> Option<Self> {
        match stored.record {
            Record::Run(run) => Some(Self::Run(run)),
            Record::SkipSpan(span) => Some(Self::SkipSpan(span)),
            _ => None,
        }
    }

    /// The run, or the skipped run that a span looks like.
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

/// The run that someone names to do something with it. A span of skips is listed, and nothing can be done with it.
pub(crate) async fn find_run(store: &dyn Store, name: &str) -> Result<Arc<Run>, ApiError> {
    match find_listed_run(store, name).await? {
        ListedRun::Run(run) => Ok(run),
        ListedRun::SkipSpan(span) => {
            let message = format!("run {} stands for occurrences that were skipped, and is not one run", span.id);
            Err(ApiError::new(ProblemCode::Conflict, message).hint("`cronhold backfill` runs a stretch of occurrences"))
        }
    }
}

/// The run or the span of skips that someone names.
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

/// A run by its id.
pub(crate) async fn load_run(store: &dyn Store, id: RunId) -> Result<Option<Arc<Run>>, Fault> {
    Ok(store.load(&[RecordKey::Run(id)]).await?.into_iter().flatten().find_map(|stored| match stored.record {
        Record::Run(run) => Some(run),
        _ => None,
    }))
}

/// The latest run or span of skips of a job, if it ever had one.
pub(crate) async fn latest_run(store: &dyn Store, job: &JobId) -> Result<Option<ListedRun>, Fault> {
    let mut query = RunQuery { job: Some(job.clone()), ..RunQuery::default() };
    let mut planned = None;
    for page in 0..PAGES_MAX {
        // Most often the first is the one.
        let limit = if page == 0 { 1 } else { PAGE };
        let found = store.page(&Query::Runs(query.clone()), limit).await?;
        let next = found.next(limit);
        for listed in found.records.into_iter().filter_map(ListedRun::of) {
            if !matches!(&listed, ListedRun::Run(run) if run.state == State::Scheduled) {
                return Ok(Some(listed));
            }
            planned.get_or_insert(listed);
        }
        match next.and_then(|key| key.run_list_id()) {
            Some(last) => query.before = Some(last),
            None => break,
        }
    }
    Ok(planned)
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

/// Why a job has no run.
async fn no_run(store: &dyn Store, job: JobId) -> Result<ApiError, Fault> {
    Ok(match is_job(store, &job).await? {
        true => ApiError::new(ProblemCode::NotFound, format!("the job `{job}` has no run yet"))
            .hint(format!("`cronhold run {job}` starts one, `cronhold why {job}` says when the next comes")),
        false => Rejection::NoJob(job).into(),
    })
}

/// Whether there is such a job.
pub(crate) async fn is_job(store: &dyn Store, job: &JobId) -> Result<bool, Fault> {
    Ok(store.load(&[RecordKey::Job(job.clone())]).await?.iter().any(Option::is_some))
}

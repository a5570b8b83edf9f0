//! Finds a run by its id, by `job#number`, or by its job. A job id means the run that a person would mean: the one that
//! is running, or else the one that started last, whatever its nominal time. Runs that were skipped, that wait or that are
//! scheduled count only if the job has no other run, or if the operation is about runs that have not started.

use std::collections::BTreeMap;
use std::sync::Arc;

use cronhold_api::ProblemCode;
use cronhold_core::decision::Rejection;
use cronhold_core::record::{JobState, Record, RecordKey, Run, SkipSpan, StoredRecord};
use cronhold_core::{JobId, NodeId, RunId, RunNumber, RunRef, State};
use cronhold_store::{Fault, Query, RunQuery, Store};

use crate::problem::ApiError;

/// Number of runs per page in the search for a run that is not scheduled.
const PAGE: usize = 20;
/// Maximum number of pages in the search. If a job has more scheduled runs than that, the search returns one of them.
const PAGES_MAX: usize = 50;
/// Maximum number of unstarted runs among which the first is found.
const UNSTARTED_MAX: usize = 1_000;
/// Number of runs that an error message lists.
const NAMED_MAX: usize = 5;
/// Number of jobs per page in the search for the job of a run.
const STATES_PAGE: usize = 500;
/// States of runs that have not started.
const UNSTARTED: [State; 2] = [State::Scheduled, State::Waiting];
/// States of ended runs that started, or ended in error before they could.
const STARTED: [State; 3] = [State::Success, State::Failure, State::Error];

/// Which run of a job its id means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobRunChoice {
    /// The running one, or else the one that started last. Of several running ones, the one that started last.
    Current,
    /// Like `Current`, but several running ones are an error: a signal to the wrong program cannot be taken back.
    OnlyRunning,
    /// The earliest one that has not started, or else like `Current`.
    Unstarted,
}

/// An entry of a list of runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ListedRun {
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
pub(crate) async fn find_run(store: &dyn Store, name: &str, choice: JobRunChoice) -> Result<Arc<Run>, ApiError> {
    match find_listed_run(store, name, choice).await? {
        ListedRun::Run(run) => Ok(run),
        ListedRun::SkipSpan(span) => {
            let message = format!("run {} stands for occurrences that were skipped, and is not one run", span.id);
            Err(ApiError::new(ProblemCode::Conflict, message).hint("`cronhold backfill` runs a stretch of occurrences"))
        }
    }
}

/// Finds the job of a run that was named by its id and cannot be read, which is the error that its search returned;
/// `None` if no job counts the run as active or waiting.
pub(crate) async fn find_unreadable_run(
    store: &dyn Store,
    name: &str,
    error: &ApiError,
) -> Result<Option<(RunId, JobId)>, Fault> {
    let Ok(RunRef::Id(run)) = RunRef::parse(name) else { return Ok(None) };
    if error.problem.code != ProblemCode::Unreadable {
        return Ok(None);
    }
    let mut after = None;
    loop {
        let page = store.page(&Query::JobStates { after }, STATES_PAGE).await?;
        let next = page.next(STATES_PAGE);
        let found = page.records.into_iter().find_map(|stored| match stored.record {
            Record::JobState(state) if state.is_active(run) || state.is_queued(run) => Some(state.job.clone()),
            _ => None,
        });
        match (found, next) {
            (Some(job), _) => return Ok(Some((run, job))),
            (None, Some(RecordKey::JobState(last))) => after = Some(last),
            (None, _) => return Ok(None),
        }
    }
}

/// Finds a run or a span of skips by its id, by `job#number`, or by its job.
pub(crate) async fn find_listed_run(
    store: &dyn Store,
    name: &str,
    choice: JobRunChoice,
) -> Result<ListedRun, ApiError> {
    match RunRef::parse(name).map_err(|error| ApiError::unreadable(ProblemCode::BadRequest, error))? {
        RunRef::Id(id) => {
            let found = store.load(&[RecordKey::Run(id), RecordKey::SkipSpan(id)]).await?;
            found.into_iter().flatten().find_map(ListedRun::of).ok_or_else(|| Rejection::NoRun(id).into())
        }
        RunRef::Numbered(job, number) => numbered(store, &job, number).await,
        RunRef::Latest(job) => match of_job(store, &job, choice).await? {
            Some(run) => Ok(run),
            None => Err(no_run(store, job).await?),
        },
    }
}

/// The run that a job id means; `None` if the job has no run.
async fn of_job(store: &dyn Store, job: &JobId, choice: JobRunChoice) -> Result<Option<ListedRun>, ApiError> {
    if choice == JobRunChoice::Unstarted
        && let Some(run) = first_unstarted(store, job).await?
    {
        return Ok(Some(run));
    }
    let state = load_state(store, job).await?;
    let known = load_runs(store, state.iter().flat_map(|state| run_ids(state, JobState::ACTIVE_MAX))).await?;
    if choice == JobRunChoice::OnlyRunning {
        check_one_runs(job, &known)?;
    }
    let latest = state.as_ref().and_then(|state| current_of(state, &known));
    match latest {
        Some(run) => Ok(Some(ListedRun::Run(run))),
        None => Ok(match latest_started(store, job).await? {
            Some(run) => Some(ListedRun::Run(run)),
            None => newest_listed(store, job).await?,
        }),
    }
}

/// The ids of the runs among which [`current_of`] chooses: at most `most` active ones, the last first, and the latest of
/// the ended ones.
pub(crate) fn run_ids(state: &JobState, most: usize) -> impl Iterator<Item = RunId> {
    let active = state.active.iter().rev().take(most).map(|active| active.run);
    active.chain(state.latest.map(|latest| latest.run))
}

/// The run of a job that is running, or else the one that started last; `None` if `known` does not have it. Of several
/// running ones, the one that started last.
pub(crate) fn current_of(state: &JobState, known: &BTreeMap<RunId, Arc<Run>>) -> Option<Arc<Run>> {
    let active = state.active.iter().filter_map(|active| known.get(&active.run));
    let running = active.filter(|run| run.state.has_program()).max_by_key(|run| (run.started(), run.id));
    running.or_else(|| known.get(&state.latest?.run)).cloned()
}

/// Fails if several runs of a job are running.
fn check_one_runs(job: &JobId, known: &BTreeMap<RunId, Arc<Run>>) -> Result<(), ApiError> {
    let mut running: Vec<&Arc<Run>> = known.values().filter(|run| run.state.has_program()).collect();
    let [_, _, ..] = &running[..] else { return Ok(()) };
    running.sort_by_key(|run| std::cmp::Reverse((run.started(), run.id)));
    let names: Vec<String> = running.iter().take(NAMED_MAX).map(|run| format!("{job}#{}", run.number)).collect();
    let more = if running.len() > NAMED_MAX { " and more" } else { "" };
    let message = format!("`{job}` has {} running runs: {}{more}", running.len(), names.join(", "));
    Err(ApiError::new(ProblemCode::Ambiguous, message).hint(format!("name one of them, such as `{}`", names[0])))
}

/// Loads runs that exist.
pub(crate) async fn load_runs(
    store: &dyn Store,
    ids: impl Iterator<Item = RunId>,
) -> Result<BTreeMap<RunId, Arc<Run>>, Fault> {
    let keys: Vec<RecordKey> = ids.map(RecordKey::Run).collect();
    if keys.is_empty() {
        return Ok(BTreeMap::new());
    }
    let found = store.load(&keys).await?.into_iter().flatten();
    Ok(found.filter_map(|stored| as_run(stored.record)).map(|run| (run.id, run)).collect())
}

async fn load_state(store: &dyn Store, job: &JobId) -> Result<Option<Arc<JobState>>, Fault> {
    let found = store.load(&[RecordKey::JobState(job.clone())]).await?;
    Ok(found.into_iter().flatten().find_map(|stored| match stored.record {
        Record::JobState(state) => Some(state),
        _ => None,
    }))
}

/// The ended run with the latest nominal time that started, or ended in error; `None` if there is none. It stands for
/// the one that started last if that one is not known: an earlier version did not record it, or it was deleted.
pub(crate) async fn latest_started(store: &dyn Store, job: &JobId) -> Result<Option<Arc<Run>>, Fault> {
    let query = RunQuery { job: Some(job.clone()), states: STARTED.to_vec(), ..RunQuery::default() };
    let found = store.page(&Query::Runs(query), 1).await?;
    Ok(found.records.into_iter().find_map(|stored| as_run(stored.record)))
}

/// The run with the earliest nominal time that has not started; `None` if all have.
async fn first_unstarted(store: &dyn Store, job: &JobId) -> Result<Option<ListedRun>, Fault> {
    let query = RunQuery { job: Some(job.clone()), states: UNSTARTED.to_vec(), ..RunQuery::default() };
    let found = store.page(&Query::Runs(query), UNSTARTED_MAX).await?;
    Ok(found.records.into_iter().filter_map(ListedRun::of).next_back())
}

fn as_run(record: Record) -> Option<Arc<Run>> {
    match record {
        Record::Run(run) => Some(run),
        _ => None,
    }
}

/// Loads a run by its id.
pub(crate) async fn load_run(store: &dyn Store, id: RunId) -> Result<Option<Arc<Run>>, Fault> {
    Ok(store.load(&[RecordKey::Run(id)]).await?.into_iter().flatten().find_map(|stored| as_run(stored.record)))
}

/// The run or span of skips with the latest nominal time that is not scheduled, or else a scheduled run; `None` if the
/// job has neither.
async fn newest_listed(store: &dyn Store, job: &JobId) -> Result<Option<ListedRun>, Fault> {
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
    let mut found = store.page(&Query::Runs(query), 1).await?;
    if let Some(record) = found.unreadable.pop() {
        return Err(Fault::Unreadable(Box::new(record)).into());
    }
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

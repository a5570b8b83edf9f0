//! Loads the records of a job from the store, for explanations that are derived from records alone. The number of
//! records is limited; a response that is based on incomplete records must report that.

use std::collections::BTreeSet;

use cronhold_core::decision::Rejection;
use cronhold_core::record::{JobRecord, LockName, Record, RecordKey, Run};
use cronhold_core::why::KnownRecords;
use cronhold_core::{JobId, RunId, State};
use cronhold_schedule::Instant;
use cronhold_store::{Fault, Query, RunQuery, Store, UnreadableRecord};

use crate::problem::ApiError;

/// Maximum number of runs of a job that are loaded. Retention keeps a few thousand, unless the job sets another limit.
pub(crate) const RUNS_MAX: usize = 20_000;
/// Number of runs in a page.
const PAGE: usize = 1_000;
/// Maximum number of unfinished runs that are loaded for the present.
const OPEN_MAX: usize = 1_000;
/// Number of latest runs that are loaded for the present.
const LATEST: usize = 20;
/// Maximum number of nodes that are loaded.
const NODES_MAX: usize = 1_000;

/// Which runs are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunSelection {
    /// Unfinished runs, and the latest finished ones.
    Present,
    /// All runs, up to [`RUNS_MAX`].
    All,
}

/// The records of a job.
#[derive(Debug)]
pub(crate) struct JobHistoryRecords {
    pub(crate) known: KnownRecords,
    /// Time of the earliest loaded run if there are more runs before it; `None` if all were loaded.
    pub(crate) cut: Option<Instant>,
    /// Runs of the job that cannot be read.
    pub(crate) unreadable: Vec<UnreadableRecord>,
}

impl JobHistoryRecords {
    /// Number of loaded runs and spans of skips.
    pub(crate) fn runs(&self) -> usize {
        self.known.runs.len() + self.known.spans.len()
    }
}

/// Loads the records of a job.
pub(crate) async fn load(store: &dyn Store, job: &JobId, runs: RunSelection) -> Result<JobHistoryRecords, Fault> {
    let keys = [
        RecordKey::Job(job.clone()),
        RecordKey::JobState(job.clone()),
        RecordKey::Triggers(job.clone()),
        RecordKey::Pause,
    ];
    let mut records = found(store, &keys).await?;
    let schedules = records.iter().find_map(|record| match record {
        Record::Job(job) => Some(of_schedules(job)),
        _ => None,
    });
    records.extend(found(store, &schedules.unwrap_or_default()).await?);
    records.extend(page(store, Query::Nodes { after: None }, NODES_MAX).await?);
    let mut unreadable = Vec::new();
    let (mut of_job, cut) = match runs {
        RunSelection::Present => (present(store, job).await?, None),
        RunSelection::All => all(store, job, &mut unreadable).await?,
    };
    records.extend(locks(store, job, &mut of_job).await?);
    records.extend(of_job);
    Ok(JobHistoryRecords { known: KnownRecords::from_iter(records), cut, unreadable })
}

/// Like `load`, and fails if the job does not exist.
pub(crate) async fn load_there(
    store: &dyn Store,
    job: &JobId,
    runs: RunSelection,
) -> Result<JobHistoryRecords, ApiError> {
    let loaded = load(store, job, runs).await?;
    match loaded.known.job {
        Some(_) => Ok(loaded),
        None => Err(Rejection::NoJob(job.clone()).into()),
    }
}

fn of_schedules(job: &JobRecord) -> Vec<RecordKey> {
    let ids = job.schedules().map(|(id, _)| id);
    ids.flat_map(|id| [RecordKey::Cursor(job.id.clone(), id.clone()), RecordKey::Backlog(job.id.clone(), id.clone())])
        .collect()
}

/// Unfinished runs, and the latest finished ones.
async fn present(store: &dyn Store, job: &JobId) -> Result<Vec<Record>, Fault> {
    let open = State::ALL.into_iter().filter(|state| !state.is_finished()).collect();
    let query = |states| Query::Runs(RunQuery { job: Some(job.clone()), states, ..RunQuery::default() });
    let mut runs = page(store, query(open), OPEN_MAX).await?;
    let latest = page(store, query(Vec::new()), LATEST).await?;
    // `runs` already has the unfinished ones.
    runs.extend(latest.into_iter().filter(|record| run(record).is_none_or(|run| run.state.is_finished())));
    Ok(runs)
}

/// All runs of a job, latest first, and the time of the earliest loaded one if there are too many.
async fn all(
    store: &dyn Store,
    job: &JobId,
    unreadable: &mut Vec<UnreadableRecord>,
) -> Result<(Vec<Record>, Option<Instant>), Fault> {
    let mut query = RunQuery { job: Some(job.clone()), ..RunQuery::default() };
    let mut runs: Vec<Record> = Vec::new();
    loop {
        let page = store.page(&Query::Runs(query.clone()), PAGE).await?;
        let next = page.next(PAGE);
        runs.extend(page.records.into_iter().map(|stored| stored.record));
        unreadable.extend(page.unreadable);
        let Some(last) = next.and_then(|key| key.run_list_id()) else { return Ok((runs, None)) };
        if runs.len() >= RUNS_MAX {
            // Ids are in the order of nominal times, except for reruns.
            return Ok((runs, Some(last.time())));
        }
        query.before = Some(last);
    }
}

/// Loads the locks that runs wait for, and the runs that hold them. If the store has no run for a holder, it also loads
/// the record of what foreign nodes run of the job.
async fn locks(store: &dyn Store, job: &JobId, runs: &mut Vec<Record>) -> Result<Vec<Record>, Fault> {
    let waiting = runs.iter().filter_map(run).filter(|run| !run.state.is_finished());
    let names: BTreeSet<LockName> = waiting.filter_map(|run| run.lock.clone()).collect();
    let keys: Vec<RecordKey> = names.into_iter().map(RecordKey::Lock).collect();
    let mut locks = found(store, &keys).await?;
    let known: BTreeSet<RunId> = runs.iter().filter_map(run).map(|run| run.id).collect();
    let holders = locks.iter().filter_map(|record| match record {
        Record::Lock(lock) => Some(lock.holder),
        _ => None,
    });
    let holders: Vec<RecordKey> = holders.filter(|holder| !known.contains(holder)).map(RecordKey::Run).collect();
    let found_holders = found(store, &holders).await?;
    if found_holders.len() < holders.len() {
        locks.extend(found(store, &[RecordKey::Foreign(job.clone())]).await?);
    }
    runs.extend(found_holders);
    Ok(locks)
}

fn run(record: &Record) -> Option<&Run> {
    match record {
        Record::Run(run) => Some(run),
        _ => None,
    }
}

async fn found(store: &dyn Store, keys: &[RecordKey]) -> Result<Vec<Record>, Fault> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    Ok(store.load(keys).await?.into_iter().flatten().map(|stored| stored.record).collect())
}

async fn page(store: &dyn Store, query: Query, limit: usize) -> Result<Vec<Record>, Fault> {
    Ok(store.page(&query, limit).await?.records.into_iter().map(|stored| stored.record).collect())
}

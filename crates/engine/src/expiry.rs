//! The walk that deletes what has expired: outputs, fences of locks, outcomes, jobs of ad hoc runs, the runs and states of
//! removed jobs, and nodes. It also continues renames that were interrupted. It takes one small step a second, so that nothing waits for it long. Each step reads a page and
//! returns commands that delete; the commands check every record again.

use std::collections::BTreeMap;

use cronhold_core::command::Command;
use cronhold_core::ids::AD_HOC_FOLDER;
use cronhold_core::job::Retain;
use cronhold_core::policy::retention::{AD_HOC_MAX, EXPIRE_MAX, KeptSpans, TRIM_MAX, longest_within, with_margin};
use cronhold_core::record::{JobState, Record, RecordKey, RenameProgress, StoredRecord};
use cronhold_core::{Args, JobId, NodeId, RunId};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Page, Query, RunQuery, Store, UnreadableRecord, expire_outputs, load_readable};

use crate::history_moves::next_history_moves;
use crate::retention::{FINAL_STATES, SurplusRuns, surplus_runs};

/// The time between two steps of a walk.
pub(crate) const STEP: Span = Span::from_secs(1);
/// The time between the start of a node and its first walk.
pub(crate) const FIRST_AFTER: Span = Span::from_secs(5);
/// Jobs, or states of jobs, that one step reads. Reading a job takes some time.
const JOBS_MAX: usize = 100;

/// Units of a rename that one step sends, and how often a step is taken again for renames that are not complete.
const MOVES_A_STEP: usize = 5;
const REPEATS_MAX: u32 = 100;

/// A step of the walk, and where it continues.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExpiryStep {
    /// Delete outputs, after that of a run.
    Outputs(Option<RunId>),
    /// Delete fences of locks, and marks.
    Locks,
    /// Find out how far the conditions of jobs look back, and how many ad hoc jobs there are, after a job.
    Jobs { after: Option<JobId>, totals: JobTotals },
    /// Remove the jobs of ad hoc runs that have ended, after a job.
    AdHocJobs { after: Option<JobId>, totals: JobTotals },
    /// Delete outcomes that are older than a span.
    Identities { after: Option<(JobId, Args)>, kept: Span },
    /// Delete the runs and the states of removed jobs, and go on with interrupted renames, after a job. `repeats` is how
    /// often this step was taken for renames that were not complete.
    JobStates { after: Option<JobId>, repeats: u32 },
    /// Delete nodes that are gone.
    Nodes(Option<NodeId>),
}

/// What the steps of a walk need to know about all jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobTotals {
    /// How far the conditions of jobs look back.
    longest: Span,
    /// The number of jobs of ad hoc runs.
    ad_hoc: usize,
}

/// What a step found, and the next step; `None` at the end of the walk.
#[derive(Debug, Default)]
pub(crate) struct ExpiryResult {
    pub(crate) commands: Vec<Command>,
    /// Records that cannot be read. They are kept.
    pub(crate) unreadable: Vec<UnreadableRecord>,
    pub(crate) next: Option<ExpiryStep>,
}

impl ExpiryStep {
    /// The first step of a walk.
    pub(crate) const FIRST: Self = Self::Outputs(None);

    /// The step after the last page of this one.
    fn following(&self, kept: &KeptSpans) -> Option<Self> {
        match self {
            Self::Outputs(_) => Some(Self::Locks),
            Self::Locks => Some(Self::Jobs { after: None, totals: JobTotals::default() }),
            Self::Jobs { totals, .. } => Some(Self::AdHocJobs { after: None, totals: *totals }),
            Self::AdHocJobs { totals, .. } => {
                Some(Self::Identities { after: None, kept: kept.outcomes.max(totals.longest) })
            }
            Self::Identities { .. } => Some(Self::JobStates { after: None, repeats: 0 }),
            Self::JobStates { .. } => Some(Self::Nodes(None)),
            Self::Nodes(_) => None,
        }
    }
}

/// Takes a step. Records that cannot be read are skipped, and a page without readable ones ends its part of the walk.
pub(crate) async fn take_step(
    store: &dyn Store,
    step: &ExpiryStep,
    kept: &KeptSpans,
    now: Instant,
) -> Result<ExpiryResult, Fault> {
    let result = match step {
        ExpiryStep::Outputs(after) => {
            let page = expire_outputs(store, *after, now).await;
            page.map(|page| {
                let next = page.next.map(|run| ExpiryStep::Outputs(Some(run)));
                ExpiryResult { unreadable: page.unreadable, ..continued(Vec::new(), next) }
            })
        }
        ExpiryStep::Locks => store.expire_locks(now.minus(kept.fence)).await.map(|()| continued(Vec::new(), None)),
        ExpiryStep::Jobs { after, totals } => read_jobs(store, after.clone(), *totals).await,
        ExpiryStep::AdHocJobs { after, totals } => {
            ended_ad_hoc_jobs(store, after.clone(), *totals, kept.ad_hoc_job, now).await
        }
        ExpiryStep::Identities { after, kept } => expired_identities(store, after.clone(), *kept, now).await,
        ExpiryStep::JobStates { after, repeats } => {
            removed_jobs(store, (after.clone(), *repeats), kept.removed_job, now).await
        }
        ExpiryStep::Nodes(after) => gone_nodes(store, *after, now.minus(kept.node)).await,
    };
    let mut result = match result {
        Err(Fault::Permanent(_)) => ExpiryResult::default(),
        result => result?,
    };
    result.next = match (result.next, step) {
        // The last page still counts for the span.
        (Some(ExpiryStep::Jobs { after: None, totals }), _) => ExpiryStep::Jobs { after: None, totals }.following(kept),
        (Some(next), _) => Some(next),
        (None, step) => step.following(kept),
    };
    Ok(result)
}

fn continued(commands: Vec<Command>, next: Option<ExpiryStep>) -> ExpiryResult {
    ExpiryResult { commands, unreadable: Vec::new(), next }
}

/// Finds out how far conditions look back, and counts ad hoc jobs. At the end of the list, `after` of the returned step is
/// `None`.
async fn read_jobs(store: &dyn Store, after: Option<JobId>, mut totals: JobTotals) -> Result<ExpiryResult, Fault> {
    let page = store.page(&Query::Jobs { after }, JOBS_MAX).await?;
    for stored in &page.records {
        if let Record::Job(job) = &stored.record {
            totals.longest = totals.longest.max(longest_within(&job.job));
            totals.ad_hoc += usize::from(job.id.is_ad_hoc());
        }
    }
    let after = match page.next(JOBS_MAX) {
        Some(RecordKey::Job(last)) => Some(last),
        _ => None,
    };
    Ok(continued(Vec::new(), Some(ExpiryStep::Jobs { after, totals })))
}

/// Finds jobs of ad hoc runs whose runs have ended long ago, and the oldest if there are too many. The ids of such jobs
/// are in the order of their runs.
async fn ended_ad_hoc_jobs(
    store: &dyn Store,
    after: Option<JobId>,
    mut totals: JobTotals,
    kept: Span,
    now: Instant,
) -> Result<ExpiryResult, Fault> {
    let before = now.minus(kept);
    let after = after.unwrap_or_else(|| JobId::parse(AD_HOC_FOLDER).expect("one word"));
    let page = store.page(&Query::JobStates { after: Some(after) }, JOBS_MAX).await?;
    let mut keys = Vec::new();
    for state in page.records.iter().filter_map(as_state).filter(|state| state.job.is_ad_hoc()) {
        let is_surplus = totals.ad_hoc > AD_HOC_MAX;
        let is_idle = state.removed.is_none() && state.active.is_empty() && state.queue.is_empty();
        // A run that started later has not ended before that either.
        let may_be_old = state.latest.is_none_or(|latest| latest.at < before);
        if !is_idle || !is_surplus && !may_be_old {
            continue;
        }
        if let Some(ended) = all_ended(store, &state.job).await?
            && (is_surplus || ended < before)
        {
            totals.ad_hoc -= usize::from(is_surplus);
            keys.push(RecordKey::Job(state.job.clone()));
        }
    }
    let next = match page.next(JOBS_MAX) {
        Some(RecordKey::JobState(last)) if may_precede_ad_hoc(&last) => {
            Some(ExpiryStep::AdHocJobs { after: Some(last), totals })
        }
        // Jobs after the ad hoc ones.
        _ => None,
    };
    Ok(ExpiryResult { unreadable: page.unreadable, ..continued(expire(keys, now), next) })
}

/// Whether jobs of ad hoc runs may follow in the order of ids, given an id after [`AD_HOC_FOLDER`].
fn may_precede_ad_hoc(last: &JobId) -> bool {
    let rest = last.as_str().strip_prefix(AD_HOC_FOLDER);
    rest.and_then(|rest| rest.bytes().next()).is_some_and(|byte| byte <= b'/')
}

/// When the last run of a job ended; `None` if one has not ended or cannot be read.
async fn all_ended(store: &dyn Store, job: &JobId) -> Result<Option<Instant>, Fault> {
    let query = RunQuery { job: Some(job.clone()), ..RunQuery::default() };
    let page = store.page(&Query::Runs(query), JOBS_MAX).await?;
    let ends = page.records.iter().map(|stored| match &stored.record {
        Record::Run(run) => run.active_until(),
        _ => Some(Instant::EPOCH),
    });
    let latest = ends.collect::<Option<Vec<Instant>>>().map(|ends| ends.into_iter().max().unwrap_or(Instant::EPOCH));
    Ok(latest.filter(|_| page.unreadable.is_empty()))
}

async fn expired_identities(
    store: &dyn Store,
    after: Option<(JobId, Args)>,
    kept: Span,
    now: Instant,
) -> Result<ExpiryResult, Fault> {
    let before = now.minus(kept);
    let page = store.page(&Query::Identities { after }, EXPIRE_MAX).await?;
    let keys = page.records.iter().filter_map(|stored| match &stored.record {
        Record::Identity(identity) if identity.outcomes.touched().is_none_or(|at| at < before) => {
            Some(stored.record.key())
        }
        _ => None,
    });
    let next = match page.next(EXPIRE_MAX) {
        Some(RecordKey::Identity(job, args)) => Some(ExpiryStep::Identities { after: Some((job, args)), kept }),
        _ => None,
    };
    Ok(continued(expire(keys.collect(), before), next))
}

/// Finds jobs with more runs than they retain, and jobs that were removed before a time: first the runs of those are
/// deleted, and in the next walk their states.
async fn removed_jobs(
    store: &dyn Store,
    (after, repeats): (Option<JobId>, u32),
    kept: Span,
    now: Instant,
) -> Result<ExpiryResult, Fault> {
    let before = now.minus(kept);
    let page = store.page(&Query::JobStates { after: after.clone() }, JOBS_MAX).await?;
    let states: Vec<&JobState> = page.records.iter().filter_map(as_state).collect();
    let keys: Vec<RecordKey> = states.iter().map(|state| RecordKey::Job(state.job.clone())).collect();
    let jobs = load_readable(store, &keys).await?;
    let mut unreadable = page.unreadable.clone();
    unreadable.extend(jobs.unreadable);
    let jobs: BTreeMap<RecordKey, Option<StoredRecord>> = jobs.records.into_iter().collect();
    let (mut commands, mut expired, mut expired_ad_hoc) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_renaming = false;
    for state in states {
        if let Some(RenameProgress::From(from)) = &state.renaming {
            is_renaming = true;
            commands.extend(next_history_moves(store, from, &state.job, MOVES_A_STEP).await?);
        }
        let job = match jobs.get(&RecordKey::Job(state.job.clone())) {
            // A job that cannot be read has not been removed.
            None => continue,
            Some(job) => job,
        };
        if let Some(Record::Job(job)) = job.as_ref().map(|stored| &stored.record) {
            // A request to prune may have been lost, and the job may retain less than it did.
            if has_surplus(state, &job.job.retain.capped(store.limits().kept)) {
                let surplus = surplus_runs(store, &state.job, &job.job.retain, state.kept).await?;
                commands.extend(surplus.commands);
                unreadable.extend(surplus.unreadable);
            }
            continue;
        }
        let has_runs = !runs_of(store, &state.job).await?.records.is_empty();
        match state.removed {
            // An older version has removed the job: the decision notes that.
            None => expired.push(RecordKey::JobState(state.job.clone())),
            // The job of an ad hoc run was removed by this walk, after its time.
            Some(at) if at >= before && !state.job.is_ad_hoc() => {}
            Some(_) if has_runs => {
                let mut surplus = SurplusRuns::default();
                for finished in FINAL_STATES {
                    surplus.add_oldest(store, &state.job, finished, TRIM_MAX).await?;
                }
                commands.extend(surplus.commands);
                unreadable.extend(surplus.unreadable);
            }
            Some(_) if state.job.is_ad_hoc() => expired_ad_hoc.push(RecordKey::JobState(state.job.clone())),
            Some(_) => expired.push(RecordKey::JobState(state.job.clone())),
        }
    }
    commands.extend(expire(expired, before));
    commands.extend(expire(expired_ad_hoc, now));
    let next = match page.next(JOBS_MAX) {
        // What is left of an interrupted rename moves now, and not in the next walk.
        _ if is_renaming && repeats < REPEATS_MAX => Some(ExpiryStep::JobStates { after, repeats: repeats + 1 }),
        Some(RecordKey::JobState(last)) => Some(ExpiryStep::JobStates { after: Some(last), repeats: 0 }),
        _ => None,
    };
    Ok(ExpiryResult { commands, unreadable, next })
}

/// Finds nodes that are gone since a time and own no unfinished run.
async fn gone_nodes(store: &dyn Store, after: Option<NodeId>, before: Instant) -> Result<ExpiryResult, Fault> {
    let page = store.page(&Query::Nodes { after }, EXPIRE_MAX).await?;
    let mut keys = Vec::new();
    for stored in &page.records {
        let Record::Node(node) = &stored.record else { continue };
        if node.gone >= before {
            continue;
        }
        let owned = store.page(&Query::Unfinished { node: Some(node.id), after: None }, 1).await?;
        if owned.records.is_empty() && owned.unreadable.is_empty() {
            keys.push(RecordKey::Node(node.id));
        }
    }
    let next = match page.next(EXPIRE_MAX) {
        Some(RecordKey::Node(last)) => Some(ExpiryStep::Nodes(Some(last))),
        _ => None,
    };
    Ok(continued(expire(keys, before), next))
}

/// Whether a job has more runs than it retains, by a margin that lets runs be pruned in batches.
fn has_surplus(state: &JobState, retain: &Retain) -> bool {
    let mut kept = state.kept;
    FINAL_STATES.into_iter().any(|state| kept.of(state).is_some_and(|kept| *kept > with_margin(retain.limit(state))))
}

fn expire(keys: Vec<RecordKey>, before: Instant) -> Vec<Command> {
    if keys.is_empty() { Vec::new() } else { vec![Command::Expire { keys, before }] }
}

async fn runs_of(store: &dyn Store, job: &JobId) -> Result<Page, Fault> {
    store.page(&Query::Runs(RunQuery { job: Some(job.clone()), ..RunQuery::default() }), 1).await
}

fn as_state(stored: &StoredRecord) -> Option<&JobState> {
    match &stored.record {
        Record::JobState(state) => Some(state),
        _ => None,
    }
}

//! The walk that deletes what has expired: outputs, fences of locks, outcomes, the runs and states of removed jobs, and
//! nodes. It takes one small step a second, so that nothing waits for it long. Each step reads a page and returns commands
//! that delete; the commands check every record again.

use std::collections::BTreeMap;

use cronhold_core::command::Command;
use cronhold_core::job::Retain;
use cronhold_core::policy::retention::{EXPIRE_MAX, KeptSpans, TRIM_MAX, longest_within, with_margin};
use cronhold_core::record::{JobState, Record, RecordKey, StoredRecord};
use cronhold_core::{Args, JobId, NodeId, RunId};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Page, Query, RunQuery, Store, UnreadableRecord, expire_outputs, load_readable};

use crate::retention::{FINAL_STATES, SurplusRuns, surplus_runs};

/// The time between two steps of a walk.
pub(crate) const STEP: Span = Span::from_secs(1);
/// The time between the start of a node and its first walk.
pub(crate) const FIRST_AFTER: Span = Span::from_secs(5);
/// Jobs, or states of jobs, that one step reads. Reading a job takes some time.
const JOBS_MAX: usize = 100;

/// A step of the walk, and where it continues.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExpiryStep {
    /// Delete outputs, after that of a run.
    Outputs(Option<RunId>),
    /// Delete fences of locks, and marks.
    Locks,
    /// Find out how far the conditions of jobs look back, after a job.
    Jobs { after: Option<JobId>, longest: Span },
    /// Delete outcomes that are older than a span.
    Identities { after: Option<(JobId, Args)>, kept: Span },
    /// Delete the runs and the states of removed jobs, after a job.
    JobStates(Option<JobId>),
    /// Delete nodes that are gone.
    Nodes(Option<NodeId>),
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
            Self::Locks => Some(Self::Jobs { after: None, longest: Span::ZERO }),
            Self::Jobs { longest, .. } => Some(Self::Identities { after: None, kept: kept.outcomes.max(*longest) }),
            Self::Identities { .. } => Some(Self::JobStates(None)),
            Self::JobStates(_) => Some(Self::Nodes(None)),
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
        ExpiryStep::Jobs { after, longest } => read_jobs(store, after.clone(), *longest).await,
        ExpiryStep::Identities { after, kept } => expired_identities(store, after.clone(), *kept, now).await,
        ExpiryStep::JobStates(after) => removed_jobs(store, after.clone(), now.minus(kept.removed_job)).await,
        ExpiryStep::Nodes(after) => gone_nodes(store, *after, now.minus(kept.node)).await,
    };
    let mut result = match result {
        Err(Fault::Permanent(_)) => ExpiryResult::default(),
        result => result?,
    };
    result.next = match (result.next, step) {
        // The last page still counts for the span.
        (Some(ExpiryStep::Jobs { after: None, longest }), _) => {
            ExpiryStep::Jobs { after: None, longest }.following(kept)
        }
        (Some(next), _) => Some(next),
        (None, step) => step.following(kept),
    };
    Ok(result)
}

fn continued(commands: Vec<Command>, next: Option<ExpiryStep>) -> ExpiryResult {
    ExpiryResult { commands, unreadable: Vec::new(), next }
}

/// Finds out how far conditions look back. At the end of the list, `after` of the returned step is `None`.
async fn read_jobs(store: &dyn Store, after: Option<JobId>, longest: Span) -> Result<ExpiryResult, Fault> {
    let page = store.page(&Query::Jobs { after }, JOBS_MAX).await?;
    let spans = page.records.iter().filter_map(|stored| match &stored.record {
        Record::Job(job) => Some(longest_within(&job.job)),
        _ => None,
    });
    let longest = spans.max().unwrap_or(Span::ZERO).max(longest);
    let after = match page.next(JOBS_MAX) {
        Some(RecordKey::Job(last)) => Some(last),
        _ => None,
    };
    Ok(continued(Vec::new(), Some(ExpiryStep::Jobs { after, longest })))
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
async fn removed_jobs(store: &dyn Store, after: Option<JobId>, before: Instant) -> Result<ExpiryResult, Fault> {
    let page = store.page(&Query::JobStates { after }, JOBS_MAX).await?;
    let states: Vec<&JobState> = page.records.iter().filter_map(as_state).collect();
    let keys: Vec<RecordKey> = states.iter().map(|state| RecordKey::Job(state.job.clone())).collect();
    let jobs = load_readable(store, &keys).await?;
    let mut unreadable = page.unreadable.clone();
    unreadable.extend(jobs.unreadable);
    let jobs: BTreeMap<RecordKey, Option<StoredRecord>> = jobs.records.into_iter().collect();
    let (mut commands, mut expired) = (Vec::new(), Vec::new());
    for state in states {
        let job = match jobs.get(&RecordKey::Job(state.job.clone())) {
            // A job that cannot be read has not been removed.
            None => continue,
            Some(job) => job,
        };
        if let Some(Record::Job(job)) = job.as_ref().map(|stored| &stored.record) {
            // A request to prune may have been lost, and the job may retain less than it did.
            if has_surplus(state, &job.job.retain) {
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
            Some(at) if at >= before => {}
            Some(_) if has_runs => {
                let mut surplus = SurplusRuns::default();
                for finished in FINAL_STATES {
                    surplus.add_oldest(store, &state.job, finished, TRIM_MAX).await?;
                }
                commands.extend(surplus.commands);
                unreadable.extend(surplus.unreadable);
            }
            Some(_) => expired.push(RecordKey::JobState(state.job.clone())),
        }
    }
    commands.extend(expire(expired, before));
    let next = match page.next(JOBS_MAX) {
        Some(RecordKey::JobState(last)) => Some(ExpiryStep::JobStates(Some(last))),
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

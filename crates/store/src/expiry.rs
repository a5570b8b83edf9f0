//! Deletes outputs: those that have expired, and the oldest if all of them together are too large. It walks through the
//! outputs, a page at a time, so that no list of expired ones is needed, and outputs that a crash left behind are found
//! too.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::job::Retain;
use cronhold_core::policy::retention::is_output_over;
use cronhold_core::record::{Record, RecordKey, Run, StoredRecord};
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Instant;

use crate::{Fault, ReadableRecords, Store, UnreadableRecord, load_readable};

/// Outputs that one step checks.
pub const OUTPUTS_A_STEP: usize = 500;

/// The result of one step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OutputExpiry {
    /// The run after which the next step continues; `None` at the end.
    pub next: Option<RunId>,
    /// Runs and jobs that could not be read. Their outputs are kept.
    pub unreadable: Vec<UnreadableRecord>,
}

/// Checks a page of outputs after `after`, and deletes the expired ones.
pub async fn expire_outputs(store: &dyn Store, after: Option<RunId>, now: Instant) -> Result<OutputExpiry, Fault> {
    let page = store.outputs(after, OUTPUTS_A_STEP).await?;
    let keys: Vec<RecordKey> = page.iter().map(|run| RecordKey::Run(*run)).collect();
    let ReadableRecords { records: runs, mut unreadable } = load_readable(store, &keys).await?;
    let jobs: BTreeSet<&JobId> = runs.iter().filter_map(|(_, stored)| Some(&as_run(stored.as_ref())?.job)).collect();
    let keys: Vec<RecordKey> = jobs.into_iter().cloned().map(RecordKey::Job).collect();
    let jobs = load_readable(store, &keys).await?;
    let default = Retain::default();
    let retains: BTreeMap<JobId, Retain> = jobs
        .records
        .into_iter()
        .filter_map(|(key, stored)| match (key, stored.map(|stored| stored.record)) {
            (_, Some(Record::Job(job))) => Some((job.id.clone(), job.job.retain.clone())),
            // Outputs of a removed job are kept for the default time.
            (RecordKey::Job(removed), _) => Some((removed, default.clone())),
            _ => None,
        })
        .collect();
    unreadable.extend(jobs.unreadable);
    let is_expired = |stored: &Option<StoredRecord>| match as_run(stored.as_ref()) {
        Some(run) => retains.get(&run.job).is_some_and(|retain| is_output_over(retain, Some(run), now)),
        None => is_output_over(&default, None, now),
    };
    let expired = runs.iter().filter(|(_, stored)| is_expired(stored));
    let expired: Vec<RunId> = expired.filter_map(|(key, _)| key.run_list_id()).collect();
    if !expired.is_empty() {
        store.drop_outputs(&expired).await?;
    }
    Ok(OutputExpiry { next: page.last().copied().filter(|_| page.len() == OUTPUTS_A_STEP), unreadable })
}

/// Deletes the oldest outputs of finished runs while all outputs together exceed `limit` bytes, or are more than the store
/// keeps. Checks a page of outputs after `after`. Outputs of unfinished runs, and of runs that cannot be read, are kept.
pub async fn trim_outputs(store: &dyn Store, after: Option<RunId>, limit: u64) -> Result<OutputExpiry, Fault> {
    let mut surplus_count = surplus_outputs(store).await?;
    if surplus_count == 0 && store.output_sizes(&[]).await?.total <= limit {
        return Ok(OutputExpiry::default());
    }
    let page = store.outputs(after, OUTPUTS_A_STEP).await?;
    let keys: Vec<RecordKey> = page.iter().map(|run| RecordKey::Run(*run)).collect();
    let ReadableRecords { records, unreadable } = load_readable(store, &keys).await?;
    let is_over = |stored: &Option<StoredRecord>| as_run(stored.as_ref()).is_none_or(|run| run.state.is_finished());
    let finished = records.iter().filter(|(_, stored)| is_over(stored));
    let mut oldest: Vec<RunId> = finished.filter_map(|(key, _)| key.run_list_id()).collect();
    let sizes = store.output_sizes(&oldest).await?;
    let mut surplus = sizes.total.saturating_sub(limit);
    let dropped = sizes.of_runs.iter().take_while(|size| {
        let is_dropped = surplus > 0 || surplus_count > 0;
        surplus = surplus.saturating_sub(**size);
        surplus_count = surplus_count.saturating_sub(1);
        is_dropped
    });
    oldest.truncate(dropped.count());
    if !oldest.is_empty() {
        store.drop_outputs(&oldest).await?;
    }
    let next = page.last().copied().filter(|_| page.len() == OUTPUTS_A_STEP && (surplus > 0 || surplus_count > 0));
    Ok(OutputExpiry { next, unreadable })
}

/// The number of outputs beyond those that the store keeps. Only a store with such a limit counts them.
async fn surplus_outputs(store: &dyn Store) -> Result<u64, Fault> {
    let Some(most) = store.limits().outputs else { return Ok(0) };
    let (mut count, mut after): (u64, Option<RunId>) = (0, None);
    loop {
        let page = store.outputs(after, OUTPUTS_A_STEP).await?;
        count += page.len() as u64;
        after = page.last().copied();
        if page.len() < OUTPUTS_A_STEP {
            return Ok(count.saturating_sub(most));
        }
    }
}

fn as_run(stored: Option<&StoredRecord>) -> Option<&Run> {
    match stored.map(|stored| &stored.record) {
        Some(Record::Run(run)) => Some(run),
        _ => None,
    }
}

//! Deletes expired outputs. It walks through all outputs, a page at a time, so that no list of expired ones is needed,
//! and outputs that a crash left behind are found too.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::job::Retain;
use cronhold_core::policy::retention::is_output_over;
use cronhold_core::record::{Record, RecordKey, Run};
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Instant;

use crate::{Fault, Store};

/// Outputs that one step checks.
pub const OUTPUTS_A_STEP: usize = 500;

/// Checks a page of outputs after `after`, and deletes the expired ones. Returns the run after which the next step
/// continues; `None` at the end.
pub async fn expire_outputs(store: &dyn Store, after: Option<RunId>, now: Instant) -> Result<Option<RunId>, Fault> {
    let page = store.outputs(after, OUTPUTS_A_STEP).await?;
    let keys: Vec<RecordKey> = page.iter().map(|run| RecordKey::Run(*run)).collect();
    let runs: Vec<Option<Record>> = records(store, &keys).await?;
    let jobs: BTreeSet<&JobId> = runs.iter().filter_map(|record| Some(&as_run(record.as_ref())?.job)).collect();
    let keys: Vec<RecordKey> = jobs.into_iter().cloned().map(RecordKey::Job).collect();
    let retains: BTreeMap<JobId, Retain> = records(store, &keys)
        .await?
        .into_iter()
        .filter_map(|record| match record {
            Some(Record::Job(job)) => Some((job.id.clone(), job.job.retain.clone())),
            _ => None,
        })
        .collect();
    let default = Retain::default();
    let is_expired = |record: &Option<Record>| {
        let run = as_run(record.as_ref());
        // Outputs of a removed job are kept for the default time.
        let retain = run.and_then(|run| retains.get(&run.job)).unwrap_or(&default);
        is_output_over(retain, run, now)
    };
    let expired: Vec<RunId> =
        page.iter().zip(&runs).filter(|(_, record)| is_expired(record)).map(|(run, _)| *run).collect();
    if !expired.is_empty() {
        store.drop_outputs(&expired).await?;
    }
    Ok(page.last().copied().filter(|_| page.len() == OUTPUTS_A_STEP))
}

async fn records(store: &dyn Store, keys: &[RecordKey]) -> Result<Vec<Option<Record>>, Fault> {
    let stored = store.load(keys).await?;
    Ok(stored.into_iter().map(|stored| stored.map(|stored| stored.record)).collect())
}

fn as_run(record: Option<&Record>) -> Option<&Run> {
    match record {
        Some(Record::Run(run)) => Some(run),
        _ => None,
    }
}

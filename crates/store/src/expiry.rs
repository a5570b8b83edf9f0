//! Outputs that are not kept any longer. They are found by walking through all that there are, some at a time: whoever
//! walks needs no record of what is to go, and what a crash left behind is found too.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::job::Retain;
use cronhold_core::policy::retention::is_output_over;
use cronhold_core::record::{Key, Record, Run};
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Instant;

use crate::{Fault, Store};

/// Outputs that are looked at in one step.
pub const OUTPUTS_A_STEP: usize = 500;

/// One step through the outputs: those after `after` are looked at, and those whose time is over are deleted. Answers
/// with where the next step goes on, or with none at the end.
pub async fn expire_outputs(store: &dyn Store, after: Option<RunId>, now: Instant) -> Result<Option<RunId>, Fault> {
    let found = store.outputs(after, OUTPUTS_A_STEP).await?;
    let keys: Vec<Key> = found.iter().map(|run| Key::Run(*run)).collect();
    let runs: Vec<Option<Record>> = records(store, &keys).await?;
    let jobs: BTreeSet<&JobId> = runs.iter().filter_map(|record| Some(&as_run(record.as_ref())?.job)).collect();
    let keys: Vec<Key> = jobs.into_iter().cloned().map(Key::Job).collect();
    let retains: BTreeMap<JobId, Retain> = records(store, &keys)
        .await?
        .into_iter()
        .filter_map(|record| match record {
            Some(Record::Job(job)) => Some((job.id.clone(), job.job.retain.clone())),
            _ => None,
        })
        .collect();
    let default = Retain::default();
    let is_over = |record: &Option<Record>| {
        let run = as_run(record.as_ref());
        // The outputs of a job that is gone are kept as long as those of one that says nothing.
        let retain = run.and_then(|run| retains.get(&run.job)).unwrap_or(&default);
        is_output_over(retain, run, now)
    };
    let over: Vec<RunId> = found.iter().zip(&runs).filter(|(_, record)| is_over(record)).map(|(run, _)| *run).collect();
    if !over.is_empty() {
        store.drop_outputs(&over).await?;
    }
    Ok(found.last().copied().filter(|_| found.len() == OUTPUTS_A_STEP))
}

async fn records(store: &dyn Store, keys: &[Key]) -> Result<Vec<Option<Record>>, Fault> {
    let stored = store.load(keys).await?;
    Ok(stored.into_iter().map(|stored| stored.map(|stored| stored.record)).collect())
}

fn as_run(record: Option<&Record>) -> Option<&Run> {
    match record {
        Some(Record::Run(run)) => Some(run),
        _ => None,
    }
}

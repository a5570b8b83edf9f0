//! Deletes old runs. The state of a job counts the runs that it has in each final state; if there are more than it retains,
//! the oldest are deleted in one batch.

use cronhold_core::command::Command;
use cronhold_core::job::Retain;
use cronhold_core::policy::retention::TRIM_MAX;
use cronhold_core::record::{Record, RecordKey};
use cronhold_core::{JobId, RunId, State};
use cronhold_schedule::Span;
use cronhold_store::{Fault, Query, ReadableRecords, Store, UnreadableRecord, load_readable};

/// The time between the end of one walk through everything that can expire and the start of the next.
pub(crate) const EXPIRE_EVERY: Span = Span::from_secs(600);

/// The surplus runs of a job.
#[derive(Debug, Default)]
pub(crate) struct SurplusRuns {
    /// The commands that delete them.
    pub(crate) commands: Vec<Command>,
    pub(crate) unreadable: Vec<UnreadableRecord>,
}

/// Finds the runs of a job that exceed what it retains. If the job or its state cannot be read, that is not known.
pub(crate) async fn surplus_runs(store: &dyn Store, job: &JobId) -> Result<SurplusRuns, Fault> {
    let keys = [RecordKey::Job(job.clone()), RecordKey::JobState(job.clone())];
    let mut retain = Retain::default();
    let mut kept = None;
    let ReadableRecords { records, unreadable } = load_readable(store, &keys).await?;
    if !unreadable.is_empty() {
        return Ok(SurplusRuns { commands: Vec::new(), unreadable });
    }
    for stored in records.into_iter().filter_map(|(_, stored)| stored) {
        match stored.record {
            Record::Job(job) => retain = job.job.retain.clone(),
            Record::JobState(state) => kept = Some(state.kept),
            _ => {}
        }
    }
    let Some(mut kept) = kept else { return Ok(SurplusRuns::default()) };
    let mut surplus_runs = SurplusRuns::default();
    for (state, limit) in [
        (State::Success, retain.success),
        (State::Failure, retain.failure),
        (State::Error, retain.error),
        (State::Skipped, retain.skipped),
    ] {
        let surplus = kept.of(state).map_or(0, |count| count.saturating_sub(limit));
        let surplus = usize::try_from(surplus).unwrap_or(TRIM_MAX).min(TRIM_MAX);
        if surplus > 0 {
            surplus_runs.add_oldest(store, job, state, surplus).await?;
        }
    }
    Ok(surplus_runs)
}

impl SurplusRuns {
    /// Adds the command that deletes the oldest runs of a job in a state, if there are any.
    pub(crate) async fn add_oldest(
        &mut self,
        store: &dyn Store,
        job: &JobId,
        state: State,
        limit: usize,
    ) -> Result<(), Fault> {
        let query = Query::Oldest { job: job.clone(), state, after: None };
        let page = store.page(&query, limit).await?;
        let (mut runs, mut spans) = (Vec::new(), Vec::new());
        for stored in &page.records {
            match &stored.record {
                Record::Run(run) => runs.push(run.id),
                Record::SkipSpan(span) => spans.push(span.id),
                _ => {}
            }
        }
        let listed = page.unreadable.iter().filter_map(|record| record.key.as_ref()?.run_list_id());
        let unreadable: Vec<(RunId, State)> = listed.map(|run| (run, state)).collect();
        self.unreadable.extend(page.unreadable);
        if !runs.is_empty() || !spans.is_empty() || !unreadable.is_empty() {
            self.commands.push(Command::Prune { job: job.clone(), runs, spans, unreadable });
        }
        Ok(())
    }
}

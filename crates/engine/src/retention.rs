//! Deletes old runs. The state of a job counts the runs that it has in each final state; if there are more than it retains,
//! the oldest are deleted in one batch.

use cronhold_core::command::{Command, PrunableRecord};
use cronhold_core::job::Retain;
use cronhold_core::policy::retention::TRIM_MAX;
use cronhold_core::record::{KeptCounts, RecordKey};
use cronhold_core::{JobId, State};
use cronhold_schedule::Span;
use cronhold_store::{Fault, Query, Store, UnreadableRecord};

/// The time between the end of one walk through everything that can expire and the start of the next.
pub(crate) const EXPIRE_EVERY: Span = Span::from_secs(600);

/// The time between two checks of the total size of outputs, and between the pages of outputs that one check deletes.
pub(crate) const TRIM_EVERY: Span = Span::from_secs(60);
pub(crate) const TRIM_STEP: Span = Span::from_millis(100);

/// The surplus runs of a job.
#[derive(Debug, Default)]
pub(crate) struct SurplusRuns {
    /// The commands that delete them.
    pub(crate) commands: Vec<Command>,
    pub(crate) unreadable: Vec<UnreadableRecord>,
}

/// The final states of runs, which are retained separately.
pub(crate) const FINAL_STATES: [State; 4] = [State::Success, State::Failure, State::Error, State::Skipped];

/// Finds the runs of a job that exceed what it retains, or what the store keeps if that is less.
pub(crate) async fn surplus_runs(
    store: &dyn Store,
    job: &JobId,
    retain: &Retain,
    mut kept: KeptCounts,
) -> Result<SurplusRuns, Fault> {
    let retain = retain.capped(store.limits().kept);
    let mut surplus_runs = SurplusRuns::default();
    for state in FINAL_STATES {
        let surplus = kept.of(state).map_or(0, |count| count.saturating_sub(retain.limit(state)));
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
        let mut records: Vec<PrunableRecord> = page.records.iter().filter_map(PrunableRecord::new).collect();
        let unreadable = |record: &UnreadableRecord| {
            let run = record.key.as_ref().and_then(RecordKey::run_list_id)?;
            Some(PrunableRecord::unreadable(run, record.version?, state))
        };
        records.extend(page.unreadable.iter().filter_map(unreadable));
        self.unreadable.extend(page.unreadable);
        if !records.is_empty() {
            self.commands.push(Command::Prune { job: job.clone(), records });
        }
        Ok(())
    }
}

//! Forgetting old runs. The set of runs counts what is kept in each state; when there are clearly too many, the oldest
//! go in one batch.

use cronhold_core::command::Command;
use cronhold_core::job::Retain;
use cronhold_core::policy::retention::TRIM_MAX;
use cronhold_core::record::{Actor, Key, Record};
use cronhold_core::{JobId, State};
use cronhold_store::{Fault, Query};

use crate::node::Node;

impl Node {
    /// Finds runs of a job that are not kept any longer, and asks for them to go.
    pub(crate) async fn prune(&mut self, job: &JobId) -> Result<(), Fault> {
        let keys = [Key::Job(job.clone()), Key::JobState(job.clone())];
        let found = self.ports.store.load(&keys).await?;
        let mut retain = Retain::default();
        let mut kept = None;
        for stored in found.into_iter().flatten() {
            match stored.record {
                Record::Job(job) => retain = job.job.retain.clone(),
                Record::JobState(state) => kept = Some(state.kept),
                _ => {}
            }
        }
        let Some(mut kept) = kept else { return Ok(()) };
        for (state, limit) in [
            (State::Success, retain.success),
            (State::Failure, retain.failure),
            (State::Error, retain.error),
            (State::Skipped, retain.skipped),
        ] {
            let over = kept.of(state).map_or(0, |count| count.saturating_sub(limit));
            let over = usize::try_from(over).unwrap_or(TRIM_MAX).min(TRIM_MAX);
            if over == 0 {
                continue;
            }
            let query = Query::Oldest { job: job.clone(), state, after: None };
            let page = self.ports.store.page(&query, over).await?;
            let runs = page.records.iter().filter_map(|stored| match &stored.record {
                Record::Run(run) => Some(run.id),
                _ => None,
            });
            let runs: Vec<_> = runs.collect();
            if !runs.is_empty() {
                self.own.push_back((Actor::Retention, Command::Prune { job: job.clone(), runs }));
            }
        }
        Ok(())
    }
}

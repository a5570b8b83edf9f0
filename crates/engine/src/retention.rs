//! Forgetting old runs and old outputs. The set of runs counts what is kept in each state; when there are clearly too many, the oldest
//! go in one batch. Outputs go when their time is over: the node walks through all of them, a step at a time.

use cronhold_core::command::Command;
use cronhold_core::job::Retain;
use cronhold_core::policy::retention::TRIM_MAX;
use cronhold_core::record::{Actor, Key, Record};
use cronhold_core::{JobId, RunId, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Query, expire_outputs};

use crate::node::Node;
use crate::plan::Item;

/// Time between two steps through the outputs.
const EXPIRE_STEP: Span = Span::from_secs(1);
/// Time between the end of one walk through the outputs and the next.
pub(crate) const EXPIRE_EVERY: Span = Span::from_secs(600);

impl Node {
    /// Deletes the outputs whose time is over, of some of those after one of them.
    pub(crate) async fn expire(&mut self, after: Option<RunId>, now: Instant) -> Result<(), Fault> {
        let next = expire_outputs(&*self.ports.store, after, now).await?;
        let wait = if next.is_some() { EXPIRE_STEP } else { EXPIRE_EVERY };
        self.plan.put(Item::Expire(next), now.plus(wait));
        Ok(())
    }

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

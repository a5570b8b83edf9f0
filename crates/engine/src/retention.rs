//! Deletes old runs and old outputs. The state of a job counts the runs that it has in each final state; if there are more
//! than it retains, the oldest are deleted in one batch. Expired outputs are deleted in a walk through all outputs, one
//! step at a time.

use cronhold_core::command::Command;
use cronhold_core::job::Retain;
use cronhold_core::policy::retention::TRIM_MAX;
use cronhold_core::record::{Record, RecordKey};
use cronhold_core::{JobId, RunId, State};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Query, Store, expire_outputs};

/// The time between two steps of a walk through the outputs.
const EXPIRE_STEP: Span = Span::from_secs(1);
/// The time between the end of one walk and the start of the next.
pub(crate) const EXPIRE_EVERY: Span = Span::from_secs(600);

/// Takes one step of the walk through the outputs. Returns the output after which the next step continues, and the time
/// until then.
pub(crate) async fn expire_step(
    store: &dyn Store,
    after: Option<RunId>,
    now: Instant,
) -> Result<(Option<RunId>, Span), Fault> {
    let next = expire_outputs(store, after, now).await?;
    Ok((next, if next.is_some() { EXPIRE_STEP } else { EXPIRE_EVERY }))
}

/// Finds the runs of a job that exceed what it retains. Returns the commands that delete them.
pub(crate) async fn surplus_runs(store: &dyn Store, job: &JobId) -> Result<Vec<Command>, Fault> {
    let keys = [RecordKey::Job(job.clone()), RecordKey::JobState(job.clone())];
    let mut retain = Retain::default();
    let mut kept = None;
    for stored in store.load(&keys).await?.into_iter().flatten() {
        match stored.record {
            Record::Job(job) => retain = job.job.retain.clone(),
            Record::JobState(state) => kept = Some(state.kept),
            _ => {}
        }
    }
    let Some(mut kept) = kept else { return Ok(Vec::new()) };
    let mut commands = Vec::new();
    for (state, limit) in [
        (State::Success, retain.success),
        (State::Failure, retain.failure),
        (State::Error, retain.error),
        (State::Skipped, retain.skipped),
    ] {
        let surplus = kept.of(state).map_or(0, |count| count.saturating_sub(limit));
        let surplus = usize::try_from(surplus).unwrap_or(TRIM_MAX).min(TRIM_MAX);
        if surplus == 0 {
            continue;
        }
        let query = Query::Oldest { job: job.clone(), state, after: None };
        let page = store.page(&query, surplus).await?;
        let (mut runs, mut spans) = (Vec::new(), Vec::new());
        for stored in &page.records {
            match &stored.record {
                Record::Run(run) => runs.push(run.id),
                Record::SkipSpan(span) => spans.push(span.id),
                _ => {}
            }
        }
        if !runs.is_empty() || !spans.is_empty() {
            commands.push(Command::Prune { job: job.clone(), runs, spans });
        }
    }
    Ok(commands)
}

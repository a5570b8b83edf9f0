//! How long things are kept that no job says anything about, which outputs are deleted, and how much one commit deletes.
//! `decide/prune.rs` and `decide/expire.rs` say what must stay.

use cronhold_schedule::{Instant, Span};

use crate::job::{Condition, Job, Requirement, Retain};
use crate::record::Run;
use crate::run::State;

/// The most runs that are pruned in one commit; the rest follows next time.
pub const TRIM_MAX: usize = 1_000;

/// The most records that one commit deletes because they have expired; the rest follows next time.
pub const EXPIRE_MAX: usize = 200;
/// How long an idempotency key counts.
pub const KEY_KEPT: Span = Span::from_secs(DAY);

/// The most jobs of ended ad hoc runs that are kept; the oldest are deleted first.
pub const AD_HOC_MAX: usize = 1_000;

const DAY: u64 = 86_400;

/// The number of runs above which a job is pruned. The margin lets runs be pruned in batches.
pub fn with_margin(limit: u32) -> u32 {
    limit.saturating_add(limit / 8 + 8)
}

/// How long things are kept after they were last used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptSpans {
    /// The latest outcomes of a job with certain args; longer if a condition of any job looks back further.
    pub outcomes: Span,
    /// The runs of a removed job, and its state with the number of the next run.
    pub removed_job: Span,
    /// The job of an ad hoc run, with its runs, after the last of them has ended; see also [`AD_HOC_MAX`].
    pub ad_hoc_job: Span,
    /// The record of a node that is gone and owns nothing.
    pub node: Span,
    /// The fence of a lock that is free. Later fences are higher, because they are not below the store's milliseconds.
    pub fence: Span,
}

impl Default for KeptSpans {
    fn default() -> Self {
        let month = Span::from_secs(30 * DAY);
        let week = Span::from_secs(7 * DAY);
        Self { outcomes: month, removed_job: month, ad_hoc_job: week, node: week, fence: month }
    }
}

/// The furthest that the conditions of a job look back.
pub fn longest_within(job: &Job) -> Span {
    fn of(condition: &Condition) -> Span {
        match &condition.requires {
            Requirement::After { within, .. } => within.unwrap_or(Span::ZERO),
            Requirement::All(inner) | Requirement::Any(inner) => inner.iter().map(of).max().unwrap_or(Span::ZERO),
            Requirement::Not(inner) => of(inner),
            _ => Span::ZERO,
        }
    }
    job.conditions.iter().map(of).max().unwrap_or(Span::ZERO)
}

/// Whether an output has expired. An output without a run has. That of a failed run is kept as long as the run. The
/// record of the run keeps the last lines.
pub fn is_output_over(retain: &Retain, run: Option<&Run>, now: Instant) -> bool {
    match run {
        Some(run) if matches!(run.state, State::Failure | State::Error) => false,
        Some(run) => run.finished().is_some_and(|finished| finished.plus(retain.output) <= now),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{JobId, JobUid, RunId, RunNumber};
    use crate::record::{Actor, Transition};

    fn id(index: usize) -> RunId {
        RunId::from_key(Instant::EPOCH, &index.to_string())
    }

    #[test]
    fn output_of_a_run_expires_unless_the_run_is_unfinished_or_failed() {
        let retain = Retain { output: Span::from_secs(60), ..Retain::default() };
        let job = JobId::parse("j").expect("an id");
        for (finished, expires) in
            [(State::Success, true), (State::Skipped, true), (State::Failure, false), (State::Error, false)]
        {
            let mut run = Run::blank(id(1), RunNumber(1), job.clone(), JobUid::from_bits(1), Instant::EPOCH);
            for (state, since) in [(State::Running, 0), (State::Stopping, 5), (finished, 10)] {
                let at = Instant::from_secs(since);
                run.log.push(Transition::entered(at, state, Actor::Program));
                run.state = state;
                let over = |secs| is_output_over(&retain, Some(&run), Instant::from_secs(secs));
                let is_over = state == finished && expires;
                assert_eq!([over(10), over(69), over(70), over(1_000)], [false, false, is_over, is_over], "{state}");
            }
        }
        assert!(is_output_over(&retain, None, Instant::EPOCH));
    }
}

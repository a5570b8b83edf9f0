//! How long programs may live when their node is not heard of. On a store that nodes share, whatever must not run beside
//! something else has a lease: its node ends it before anyone may believe that it is gone.

use cronhold_schedule::Span;

use crate::job::{Condition, Job, Lock, Overlap, Requirement};
use crate::record::Terms;

/// A node that was not heard of for so long has lost its runs, but for those whose lease says otherwise.
pub const STALE_AFTER: Span = Span::from_secs(45);
/// No run is lost sooner than this, however short its lease: nodes are heard of every two seconds.
pub const STALE_MIN: Span = Span::from_secs(6);
/// Programs end this long before others may believe that they have.
const MARGIN_MAX: Span = Span::from_millis(500);

/// The lease of a job's runs on a shared store. Under a lock it is the lock's time to live. What is held back by other
/// runs of its job alone has longer: a store that is away for some seconds should not end it.
pub fn lease(job: &Job) -> Option<Span> {
    if job.lock != Lock::None {
        return Some(job.ttl);
    }
    let is_limited = job.conditions.iter().any(limits);
    (job.overlap != Overlap::Allow || is_limited).then_some(STALE_AFTER)
}

/// Whether a condition counts runs.
fn limits(condition: &Condition) -> bool {
    match &condition.requires {
        Requirement::MaxRunning { .. } => true,
        Requirement::All(inner) | Requirement::Any(inner) => inner.iter().any(limits),
        Requirement::Not(inner) => limits(inner),
        _ => false,
    }
}

/// How long a node must not have been heard of before its run counts as lost.
pub fn stale_after(terms: &Terms) -> Span {
    let lease = terms.lease.unwrap_or(STALE_AFTER).max(STALE_MIN);
    lease.plus(margin(lease))
}

/// How much earlier than its end a lease is over for the program itself.
pub fn margin(lease: Span) -> Span {
    Span::from_micros(lease.micros() / 4).min(MARGIN_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Program;

    fn job(lock: Lock, overlap: Overlap) -> Job {
        Job { lock, overlap, ttl: Span::from_secs(8), ..Job::new(Program::Noop { duration: Span::ZERO }) }
    }

    #[test]
    fn what_must_be_alone_has_a_lease() {
        assert_eq!(lease(&job(Lock::None, Overlap::Allow)), None);
        assert_eq!(lease(&job(Lock::None, Overlap::Skip)), Some(STALE_AFTER));
        assert_eq!(lease(&job(Lock::Job, Overlap::Allow)), Some(Span::from_secs(8)));
    }

    #[test]
    fn a_run_is_lost_after_its_program_was_ended() {
        for secs in [1, 6, 10, 300] {
            let lease = Span::from_secs(secs);
            let terms = Terms { lease: Some(lease), ..Terms::default() };
            assert!(stale_after(&terms) > lease && margin(lease) < lease, "{lease}");
        }
        assert!(stale_after(&Terms::default()) > STALE_AFTER);
    }
}

//! Leases: how long a program may continue without a heartbeat of its node. On a shared store, every run that must not
//! overlap with another has a lease: its node ends the program before other nodes may consider it gone.

use cronhold_schedule::Span;

use crate::job::{Condition, Job, LockPolicy, OverlapPolicy, Requirement};
use crate::record::{ExecutionPolicy, Run};

/// After this time without a heartbeat the runs of a node are lost, unless they have a lease.
pub const STALE_AFTER: Span = Span::from_secs(45);
/// The lease of a run that only its own job's overlap or limits restrict, unless the job or the store's URL sets another.
/// It is longer than a restart of the store or an upgrade of the daemon takes.
pub const LEASE_DEFAULT: Span = Span::from_secs(600);
/// No run is lost sooner than this, however short its lease. Nodes send a heartbeat every two seconds.
pub const STALE_MIN: Span = Span::from_secs(6);
/// After this time without a heartbeat other nodes take over the remote tasks of a node.
pub const TAKEOVER_AFTER: Span = Span::from_secs(20);
/// How much earlier programs end than other nodes may consider them gone.
const MARGIN_MAX: Span = Span::from_millis(500);

/// The lease of a job's runs on a shared store. For a job with a lock it is the lock's time to live. A run that only
/// its own job's overlap or limits restrict has the job's `lease`, or else `default`. That one can be long: the set of
/// active runs keeps other runs from starting, and the lease only bounds how long a lost node blocks them.
pub fn lease(job: &Job, default: Span) -> Option<Span> {
    if job.lock != LockPolicy::None {
        return Some(job.ttl);
    }
    let is_limited = job.conditions.iter().any(limits);
    (job.overlap != OverlapPolicy::Allow || is_limited).then(|| job.lease.unwrap_or(default))
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

/// The time without a heartbeat after which a run counts as lost.
pub fn stale_after(terms: &ExecutionPolicy) -> Span {
    let lease = terms.lease.unwrap_or(STALE_AFTER).max(STALE_MIN);
    lease.plus(margin(lease))
}

/// The time without a heartbeat after which other nodes end a run or take it over. The program of a remote task is not on
/// the node, so another node can follow it soon.
pub fn lost_after(run: &Run) -> Span {
    let stale = stale_after(&run.terms);
    if run.remote_task().is_some() { stale.min(TAKEOVER_AFTER) } else { stale }
}

/// How much earlier than the end of the lease the program is ended.
pub fn margin(lease: Span) -> Span {
    Span::from_micros(lease.micros() / 4).min(MARGIN_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Program;

    fn job(lock: LockPolicy, overlap: OverlapPolicy) -> Job {
        Job { lock, overlap, ttl: Span::from_secs(8), ..Job::new(Program::Noop { duration: Span::ZERO }) }
    }

    #[test]
    fn job_with_a_lock_or_an_overlap_rule_has_a_lease() {
        let own = Some(Span::from_secs(90));
        for (lock, overlap, set, expected) in [
            (LockPolicy::None, OverlapPolicy::Allow, None, None),
            (LockPolicy::None, OverlapPolicy::Allow, own, None),
            (LockPolicy::None, OverlapPolicy::Skip, None, Some(LEASE_DEFAULT)),
            (LockPolicy::None, OverlapPolicy::Skip, own, own),
            (LockPolicy::Job, OverlapPolicy::Allow, None, Some(Span::from_secs(8))),
            (LockPolicy::Job, OverlapPolicy::Skip, own, Some(Span::from_secs(8))),
        ] {
            let job = Job { lease: set, ..job(lock, overlap) };
            assert_eq!(lease(&job, LEASE_DEFAULT), expected, "{:?} {:?} {set:?}", job.lock, job.overlap);
        }
    }

    #[test]
    fn program_ends_before_its_run_is_lost() {
        for secs in [1, 6, 10, 300] {
            let lease = Span::from_secs(secs);
            let terms = ExecutionPolicy { lease: Some(lease), ..ExecutionPolicy::default() };
            assert!(stale_after(&terms) > lease && margin(lease) < lease, "{lease}");
        }
        assert!(stale_after(&ExecutionPolicy::default()) > STALE_AFTER);
        // A restart of the store takes a minute, and the stop signal comes a grace period before the end.
        assert!(LEASE_DEFAULT >= Span::from_secs(300));
    }
}

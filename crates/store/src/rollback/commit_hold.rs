//! How long commits are rejected after a rollback: until every program under a lock was either restored by its node, or
//! stopped by its keeper because its lock was not renewed; and long enough for every live node to restore its runs. A
//! program without a lock may have a lease of many minutes, and nothing waits for it: it matters only if its node stays
//! unreachable while the store loses its run, and it runs beside the next run of its own job then.

use std::sync::atomic::{AtomicU64, Ordering};

use cronhold_core::job::LockPolicy;
use cronhold_core::policy::lease;
use cronhold_core::record::Record;
use cronhold_schedule::Span;

/// The least time: a node that has not restored its runs by then counts as lost.
const HOLD_MIN: Span = lease::STALE_AFTER;

/// The longest lease of a run under a lock that this process has seen, and the minimum.
#[derive(Debug)]
pub struct CommitHold {
    min_micros: AtomicU64,
    longest_micros: AtomicU64,
}

impl Default for CommitHold {
    fn default() -> Self {
        Self { min_micros: AtomicU64::new(with_margin(HOLD_MIN).micros()), longest_micros: AtomicU64::new(0) }
    }
}

impl CommitHold {
    /// How long commits are rejected after a restart of the store, so that each live node can report lost commits: a
    /// node without a heartbeat for that time counts as gone.
    pub fn after_restart() -> Span {
        with_margin(lease::STALE_MIN)
    }

    /// A record was read or written: runs of this job, or this run, may hold a lock with its lease.
    pub fn observe_record(&self, record: &Record) {
        let lease = match record {
            Record::Job(job) => (job.job.lock != LockPolicy::None).then_some(job.job.ttl),
            Record::Run(run) => run.lock.as_ref().and(run.terms.lease),
            _ => None,
        };
        if let Some(lease) = lease {
            self.observe_lease(with_margin(lease));
        }
    }

    /// The lock of a run has this time to live.
    pub fn observe_lease(&self, lease: Span) {
        self.longest_micros.fetch_max(lease.micros(), Ordering::Relaxed);
    }

    /// How long commits are rejected.
    pub fn span(&self) -> Span {
        let (min, longest) = (self.min_micros.load(Ordering::Relaxed), self.longest_micros.load(Ordering::Relaxed));
        Span::from_micros(min.max(longest))
    }

    /// Replaces the minimum, for tests that do not wait as long as nodes.
    pub fn set_min(&self, min: Span) {
        self.min_micros.store(min.micros(), Ordering::Relaxed);
    }
}

fn with_margin(lease: Span) -> Span {
    lease.plus(lease::margin(lease))
}

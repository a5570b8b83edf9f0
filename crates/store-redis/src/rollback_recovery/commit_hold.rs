//! How long commits are rejected after a rollback: until every program under a lock was either restored by its node, or
//! stopped by its keeper because its lock was not renewed; and long enough for every live node to restore its runs. A
//! program without a lock may have a lease of many minutes, and nothing waits for it: it matters only if its node stays
//! unreachable while Redis loses its run, and it runs beside the next run of its own job then.

use std::sync::atomic::{AtomicU64, Ordering};

use cronhold_core::job::LockPolicy;
use cronhold_core::policy::lease;
use cronhold_core::record::Record;
use cronhold_schedule::Span;

/// The least time: a node that has not restored its runs by then counts as lost.
const HOLD_MIN: Span = lease::STALE_AFTER;

/// The longest lease of a run under a lock that this process has seen, and the minimum.
#[derive(Debug)]
pub(super) struct CommitHold {
    min_millis: AtomicU64,
    longest_millis: AtomicU64,
}

impl Default for CommitHold {
    fn default() -> Self {
        Self { min_millis: AtomicU64::new(with_margin(HOLD_MIN)), longest_millis: AtomicU64::new(0) }
    }
}

impl CommitHold {
    /// A record was read or written: runs of this job, or this run, may hold a lock with its lease.
    pub(super) fn observe_record(&self, record: &Record) {
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
    pub(super) fn observe_lease(&self, millis: u64) {
        self.longest_millis.fetch_max(millis, Ordering::Relaxed);
    }

    /// How long commits are rejected, in milliseconds.
    pub(super) fn millis(&self) -> u64 {
        self.min_millis.load(Ordering::Relaxed).max(self.longest_millis.load(Ordering::Relaxed))
    }

    /// Replaces the minimum.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn set_min(&self, millis: u64) {
        self.min_millis.store(millis, Ordering::Relaxed);
    }
}

/// A lease with its margin, in whole milliseconds.
fn with_margin(lease: Span) -> u64 {
    lease.plus(lease::margin(lease)).micros().div_ceil(1_000)
}

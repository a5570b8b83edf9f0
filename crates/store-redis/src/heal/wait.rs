//! For how long nothing is committed after the store has gone back: until whatever runs somewhere and must be alone has
//! either been brought back by its node, or has been ended by its keeper because nobody renewed its lease.

use std::sync::atomic::{AtomicU64, Ordering};

use cronhold_core::policy::lease;
use cronhold_core::record::Record;
use cronhold_schedule::Span;

/// The longest lease that a run has without a lock. Nodes that this process knows nothing of may have such runs.
const LEASE: Span = lease::STALE_AFTER;

/// The longest lease that was seen, and how long is waited at least.
#[derive(Debug)]
pub(super) struct Wait {
    least: AtomicU64,
    longest: AtomicU64,
}

impl Default for Wait {
    fn default() -> Self {
        Self { least: AtomicU64::new(with_margin(LEASE)), longest: AtomicU64::new(0) }
    }
}

impl Wait {
    /// A record was read or written: runs of this job, or this run, may have such a lease.
    pub(super) fn learn(&self, record: &Record) {
        let lease = match record {
            Record::Job(job) => lease::lease(&job.job),
            Record::Run(run) => run.terms.lease,
            _ => None,
        };
        if let Some(lease) = lease {
            self.saw(with_margin(lease));
        }
    }

    /// A lock of a run lives for so many milliseconds.
    pub(super) fn saw(&self, millis: u64) {
        self.longest.fetch_max(millis, Ordering::Relaxed);
    }

    /// For how many milliseconds nothing is committed.
    pub(super) fn millis(&self) -> u64 {
        self.least.load(Ordering::Relaxed).max(self.longest.load(Ordering::Relaxed))
    }

    /// Waits for so many milliseconds at least, whatever leases there may be elsewhere.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn set_least(&self, millis: u64) {
        self.least.store(millis, Ordering::Relaxed);
    }
}

/// A lease and its margin, in whole milliseconds.
fn with_margin(lease: Span) -> u64 {
    lease.plus(lease::margin(lease)).micros().div_ceil(1_000)
}

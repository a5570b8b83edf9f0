//! Totals of writes, for health reports.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use cronhold_store::Fault;
use cronhold_store::lock_mutex;

/// Totals since the store was opened, and why the last write failed.
#[derive(Debug, Default)]
pub(crate) struct WriteCounters {
    commits: AtomicU64,
    units: AtomicU64,
    /// Writes to keys of Cronken that were skipped because a key has the wrong type.
    skipped_writes: AtomicU64,
    last_fault: Mutex<Option<String>>,
}

impl WriteCounters {
    /// Counts a commit that the server confirmed.
    pub(crate) fn count_commit(&self, units: usize, skipped_writes: u64) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.units.fetch_add(units as u64, Ordering::Relaxed);
        self.count_skipped(skipped_writes);
    }

    pub(crate) fn count_skipped(&self, skipped_writes: u64) {
        self.skipped_writes.fetch_add(skipped_writes, Ordering::Relaxed);
    }

    /// Records the outcome of the latest write; `None` if it succeeded.
    pub(crate) fn record_outcome(&self, fault: Option<&Fault>) {
        *lock_mutex(&self.last_fault) = fault.map(ToString::to_string);
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(crate) fn units(&self) -> u64 {
        self.units.load(Ordering::Relaxed)
    }

    /// Why the latest write failed; `None` if it succeeded.
    pub(crate) fn last_fault(&self) -> Option<String> {
        lock_mutex(&self.last_fault).clone()
    }

    pub(crate) fn warning(&self) -> Option<String> {
        let skipped = self.skipped_writes.load(Ordering::Relaxed);
        (skipped > 0).then(|| {
            format!("{skipped} writes to keys that Cronken's clients read were skipped: the keys have the wrong type")
        })
    }
}

//! Totals of writes, for health reports.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use cronhold_store::{Fault, StoreHealthReport, UnitReceipt, UnitRefusal, lock_mutex};

/// Totals since the store was opened, and why the last write failed.
#[derive(Debug, Default)]
pub struct WriteCounters {
    commits: AtomicU64,
    units: AtomicU64,
    last_fault: Mutex<Option<String>>,
}

impl WriteCounters {
    /// Counts a commit that the server confirmed.
    pub fn count_commit(&self, units: usize) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.units.fetch_add(units as u64, Ordering::Relaxed);
    }

    /// Records the outcome of the latest write; `None` if it succeeded.
    pub fn record_outcome(&self, fault: Option<&Fault>) {
        *lock_mutex(&self.last_fault) = fault.map(ToString::to_string);
    }

    /// Records the outcome of the latest commit. A unit that was refused by the rules is not a failure of the store.
    pub fn record_results(&self, results: &[Result<UnitReceipt, UnitRefusal>]) {
        self.record_outcome(results.iter().find_map(|result| match result {
            Err(UnitRefusal::Fault(fault)) => Some(fault),
            _ => None,
        }));
    }

    /// The report of a store whose last attempt to connect failed for the reason `unreachable`, if any. The store adds
    /// whether it is sealed.
    pub fn health(&self, unreachable: Option<String>, description: String, warnings: Vec<String>) -> StoreHealthReport {
        StoreHealthReport {
            trouble: unreachable.or_else(|| lock_mutex(&self.last_fault).clone()),
            description,
            commits: self.commits.load(Ordering::Relaxed),
            units: self.units.load(Ordering::Relaxed),
            sealed: None,
            warnings,
        }
    }
}

#[cfg(test)]
mod tests {
    use cronhold_core::record::RecordKey;

    use super::*;

    #[test]
    fn report_shows_the_latest_failure_and_totals() {
        let counters = WriteCounters::default();
        let trouble = || counters.health(None, String::new(), Vec::new()).trouble;
        counters.count_commit(3);
        counters.record_results(&[Err(UnitRefusal::Conflict(RecordKey::Pause)), Ok(UnitReceipt::default())]);
        assert_eq!(trouble(), None, "a conflict is an answer");
        let fault = Fault::ReadOnly("the disk is full".to_owned());
        counters.record_results(&[Ok(UnitReceipt::default()), Err(fault.clone().into())]);
        assert_eq!(trouble(), Some(fault.to_string()));
        let report = counters.health(Some("unreachable".to_owned()), "a store".to_owned(), Vec::new());
        assert_eq!(report.trouble.as_deref(), Some("unreachable"));
        assert_eq!((report.commits, report.units), (1, 3));
        counters.record_outcome(None);
        assert_eq!(trouble(), None);
    }
}

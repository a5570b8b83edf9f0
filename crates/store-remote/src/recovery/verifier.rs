//! Verifies that the journal still matches the store. Other processes report their changes by notifications, which may
//! be lost: without this check, a recovery would restore a job that another process deleted long ago.

use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_core::record::RecordKey;
use cronhold_store::Fault;
use tokio::sync::Mutex;

use super::{RecoveryServer, RollbackRecovery};

/// Records that a periodic check covers; the next check continues there. After a gap in the notifications all are
/// checked.
const RECORDS_PER_CHECK: usize = 20_000;

/// How far the verification of the journal has come.
#[derive(Debug, Default)]
pub(super) struct JournalVerifier {
    /// The record after which to continue; `None` to start at the beginning. Held while a check runs.
    progress: Mutex<Option<RecordKey>>,
    /// Whether notifications were lost since the current pass began.
    has_gap: AtomicBool,
}

impl JournalVerifier {
    /// Verifies everything. If a check is running, that check starts over instead.
    pub(super) async fn verify_all<S: RecoveryServer>(&self, recovery: &RollbackRecovery<S>) {
        self.has_gap.store(true, Ordering::Release);
        let Ok(mut progress) = self.progress.try_lock() else { return };
        while self.has_gap.swap(false, Ordering::AcqRel) {
            *progress = None;
            loop {
                if verify_next(recovery, &mut progress).await.is_err() {
                    self.has_gap.store(true, Ordering::Release);
                    return;
                }
                if progress.is_none() {
                    break;
                }
            }
        }
    }

    /// Verifies a part; everything, if an earlier attempt after a gap failed.
    pub(super) async fn verify_some<S: RecoveryServer>(&self, recovery: &RollbackRecovery<S>) {
        if self.has_gap.load(Ordering::Acquire) {
            return self.verify_all(recovery).await;
        }
        let Ok(mut progress) = self.progress.try_lock() else { return };
        for _ in 0..RECORDS_PER_CHECK / S::VERIFIED_PER_CALL {
            // After a failure the next check continues here.
            if verify_next(recovery, &mut progress).await.is_err() || progress.is_none() {
                return;
            }
        }
    }
}

/// Verifies the records after `progress`, and drops those that others have changed from the journal. Advances
/// `progress`, to `None` at the end.
async fn verify_next<S: RecoveryServer>(
    recovery: &RollbackRecovery<S>,
    progress: &mut Option<RecordKey>,
) -> Result<(), Fault> {
    let entries = recovery.tracker.versions_after(progress.as_ref(), S::VERIFIED_PER_CALL);
    let Some((last, _)) = entries.last() else {
        *progress = None;
        return Ok(());
    };
    let changed = match recovery.server.find_changed(recovery.position(), &entries).await? {
        Ok(changed) => changed,
        Err(rejection) => return Err(recovery.handle_rejection(rejection).await),
    };
    for (key, version) in changed.into_iter().filter_map(|index| entries.get(index)) {
        recovery.tracker.forget_version(key, *version);
    }
    *progress = (entries.len() == S::VERIFIED_PER_CALL).then(|| last.clone());
    Ok(())
}

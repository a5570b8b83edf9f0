//! Verifies that the journal still matches the store. Other processes report their changes by notifications, which may
//! be lost: without this check, a recovery would restore a job that another process deleted long ago.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use cronhold_core::record::RecordKey;
use cronhold_store::Fault;
use tokio::sync::Mutex;

use super::RollbackRecovery;
use crate::codec::pack::Pack;
use crate::codec::{self, reply};
use crate::connections::Script;
use crate::keys;

/// Records of one script call. While a script runs, the server serves no other request.
const RECORDS_PER_CALL: usize = 500;

/// Records that a periodic check covers; the next check continues there. After a gap in the notifications all are
/// checked.
const RECORDS_PER_CHECK: usize = 20_000;

static VERIFY: LazyLock<Script> = LazyLock::new(|| Script::on_namespace(&[include_str!("../scripts/verify.lua")]));

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
    pub(super) async fn verify_all(&self, recovery: &RollbackRecovery) {
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
    pub(super) async fn verify_some(&self, recovery: &RollbackRecovery) {
        if self.has_gap.load(Ordering::Acquire) {
            return self.verify_all(recovery).await;
        }
        let Ok(mut progress) = self.progress.try_lock() else { return };
        for _ in 0..RECORDS_PER_CHECK / RECORDS_PER_CALL {
            // After a failure the next check continues here.
            if verify_next(recovery, &mut progress).await.is_err() || progress.is_none() {
                return;
            }
        }
    }
}

/// Verifies the records after `progress`, and drops those that others have changed from the journal. Advances
/// `progress`, to `None` at the end.
async fn verify_next(recovery: &RollbackRecovery, progress: &mut Option<RecordKey>) -> Result<(), Fault> {
    let entries = recovery.tracker.versions_after(progress.as_ref(), RECORDS_PER_CALL);
    let Some((last, _)) = entries.last() else {
        *progress = None;
        return Ok(());
    };
    let mut packed = Pack::default();
    packed.list(3 * entries.len());
    for (key, version) in &entries {
        packed.number(u64::from(keys::digit(key.kind())));
        packed.text(keys::field(key));
        packed.text(codec::version_text(*version));
    }
    let (position, seq) = recovery.position();
    let args =
        vec![recovery.client.namespace_arg(), position.into_bytes(), seq.to_string().into_bytes(), packed.into_bytes()];
    let reply = reply::list(recovery.client.call(&VERIFY, args).await?)?;
    let reply = recovery.check_reply(reply).await?;
    for changed in reply.iter().skip(1) {
        let changed = usize::try_from(reply::number(changed)?).ok().and_then(|index| entries.get(index));
        if let Some((key, version)) = changed {
            recovery.tracker.forget_version(key, *version);
        }
    }
    *progress = (entries.len() == RECORDS_PER_CALL).then(|| last.clone());
    Ok(())
}

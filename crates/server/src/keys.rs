//! Idempotency keys: who asks for a run twice under one key gets one run. The id of a run begins with its time, so a key
//! alone does not make an id. For a run with a time of its own it does together with that time; for one that is to
//! start now, the id that was given out first counts. It is remembered here, and found among the latest runs of the
//! job after a restart.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use cronhold_core::record::RecordKey;
use cronhold_core::{JobId, RunId};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Query, RunQuery, Store};
use sha2::{Digest, Sha256};

/// Keys that are remembered.
const KEPT_MAX: usize = 4_096;
/// After a restart a key is found among so many runs of the job.
const LOOKED_AT_MAX: usize = 200;
/// Clocks of nodes may differ by this much.
const LEEWAY: Span = Span::from_secs(60);
/// Bits of an id behind its time.
const OWN_BITS: u128 = (1 << 80) - 1;

/// Keys and the runs that they stand for, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct IdempotencyKeys(Mutex<VecDeque<RunId>>);

/// What is asked for under a key.
#[derive(Debug)]
pub(crate) struct KeyedRequest<'a> {
    pub(crate) job: &'a JobId,
    /// What else tells it apart, such as the run that is to be done again.
    pub(crate) what: &'a str,
    pub(crate) key: &'a str,
}

impl IdempotencyKeys {
    /// The id of the run that is to start now.
    pub(crate) async fn id(&self, keyed: &KeyedRequest<'_>, now: Instant, store: &dyn Store) -> Result<RunId, Fault> {
        let id = keyed.id(now);
        if let Some(known) = self.known(id) {
            return Ok(known);
        }
        let stored = stored(keyed.job, id, now, store).await?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Someone else may have come with the same key while the store was asked.
        if let Some(known) = kept.iter().find(|known| is_same(**known, id)) {
            return Ok(*known);
        }
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        let id = stored.unwrap_or(id);
        kept.push_back(id);
        Ok(id)
    }

    fn known(&self, id: RunId) -> Option<RunId> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|known| is_same(**known, id)).copied()
    }
}

impl KeyedRequest<'_> {
    /// The id of a run for a time. The same key and the same time are the same run.
    pub(crate) fn id(&self, at: Instant) -> RunId {
        let mut hash = Sha256::new();
        for part in [self.job.as_str(), self.what, self.key] {
            // Lengths stand before the parts, so that no two lists of parts look the same.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let mut own = [0; 10];
        own.copy_from_slice(&hash.finalize()[..10]);
        RunId::from_random(at, own)
    }
}

/// Whether two ids stand for the same key at some time.
fn is_same(one: RunId, other: RunId) -> bool {
    one.bits() & OWN_BITS == other.bits() & OWN_BITS
}

/// The run that an earlier life of the node has made under the key.
async fn stored(job: &JobId, id: RunId, now: Instant, store: &dyn Store) -> Result<Option<RunId>, Fault> {
    let query = RunQuery {
        job: Some(job.clone()),
        before: Some(RunId::from_random(now.plus(LEEWAY), [0xff; 10])),
        ..RunQuery::default()
    };
    let page = store.page(&Query::Runs(query), LOOKED_AT_MAX).await?;
    let ids = page.records.iter().filter_map(|stored| match stored.record.key() {
        RecordKey::Run(run) => Some(run),
        _ => None,
    });
    Ok(ids.into_iter().find(|run| is_same(*run, id)))
}

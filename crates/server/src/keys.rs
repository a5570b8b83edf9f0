//! Idempotency keys: two requests with the same key create one run. A run id begins with the time of the run, so a key
//! alone does not determine the id. If the request has a time, key and time determine it. If the run starts now, the id
//! of the first request counts: this module keeps it in memory, and finds it among the latest runs of the job after a
//! restart.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use cronhold_core::record::RecordKey;
use cronhold_core::{JobId, RunId};
use cronhold_schedule::{Instant, Span};
use cronhold_store::{Fault, Query, RunQuery, Store};
use sha2::{Digest, Sha256};

/// Number of ids that are kept in memory.
const KEPT_MAX: usize = 4_096;
/// Number of runs of the job that are searched for a key after a restart.
const SEARCHED_MAX: usize = 200;
/// Tolerated difference between the clocks of nodes.
const LEEWAY: Span = Span::from_secs(60);
/// The bits of an id after its time.
const OWN_BITS: u128 = (1 << 80) - 1;

/// Run ids of recent keys, oldest first.
#[derive(Debug, Default)]
pub(crate) struct IdempotencyKeys(Mutex<VecDeque<RunId>>);

/// A request with a key.
#[derive(Debug)]
pub(crate) struct KeyedRequest<'a> {
    pub(crate) job: &'a JobId,
    /// Distinguishes requests of one job, such as the run to repeat.
    pub(crate) what: &'a str,
    pub(crate) key: &'a str,
}

impl IdempotencyKeys {
    /// The id of a run that starts now: that of the first request with the same key, or a new one.
    pub(crate) async fn id(&self, keyed: &KeyedRequest<'_>, now: Instant, store: &dyn Store) -> Result<RunId, Fault> {
        let id = keyed.id(now);
        if let Some(known) = self.known(id) {
            return Ok(known);
        }
        let stored = stored(keyed.job, id, now, store).await?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A concurrent request with the same key may have added its id during the query.
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
    /// The id of a run for a time. The same key and the same time give the same id.
    pub(crate) fn id(&self, at: Instant) -> RunId {
        let mut hash = Sha256::new();
        for part in [self.job.as_str(), self.what, self.key] {
            // Each part has its length as a prefix, so that different lists of parts never have the same bytes.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let mut own = [0; 10];
        own.copy_from_slice(&hash.finalize()[..10]);
        RunId::from_random(at, own)
    }
}

/// Whether two ids belong to the same key, with any time.
fn is_same(one: RunId, other: RunId) -> bool {
    one.bits() & OWN_BITS == other.bits() & OWN_BITS
}

/// Searches the latest stored runs of the job for a run of the key.
async fn stored(job: &JobId, id: RunId, now: Instant, store: &dyn Store) -> Result<Option<RunId>, Fault> {
    let query = RunQuery {
        job: Some(job.clone()),
        before: Some(RunId::from_random(now.plus(LEEWAY), [0xff; 10])),
        ..RunQuery::default()
    };
    let page = store.page(&Query::Runs(query), SEARCHED_MAX).await?;
    let ids = page.records.iter().filter_map(|stored| match stored.record.key() {
        RecordKey::Run(run) => Some(run),
        _ => None,
    });
    Ok(ids.into_iter().find(|run| is_same(*run, id)))
}

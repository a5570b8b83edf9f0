//! Reads one job from a store.

use std::sync::Arc;

use cronhold_core::JobId;
use cronhold_core::record::{JobRecord, Record, RecordKey};

use crate::{Fault, Store};

/// The stored job; `None` if there is no job with this id.
pub async fn find_job(store: &dyn Store, id: &JobId) -> Result<Option<Arc<JobRecord>>, Fault> {
    let found = store.load(&[RecordKey::Job(id.clone())]).await?.into_iter().flatten().next();
    Ok(found.and_then(|stored| match stored.record {
        Record::Job(job) => Some(job),
        _ => None,
    }))
}

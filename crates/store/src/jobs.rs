//! One job out of a store.

use std::sync::Arc;

use cronhold_core::JobId;
use cronhold_core::record::{JobRecord, Key, Record};

use crate::{Fault, Store};

/// A job as it is stored; none when there is none of that name.
pub async fn find_job(store: &dyn Store, id: &JobId) -> Result<Option<Arc<JobRecord>>, Fault> {
    let found = store.load(&[Key::Job(id.clone())]).await?.into_iter().flatten().next();
    Ok(found.and_then(|stored| match stored.record {
        Record::Job(job) => Some(job),
        _ => None,
    }))
}

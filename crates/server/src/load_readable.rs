//! Loads many records for a response that must not fail because one of them is corrupt.

use cronhold_core::record::{RecordKey, StoredRecord};
use cronhold_store::{Fault, Store};

/// Returns the records that exist and can be read, and the errors of the unreadable ones. Fails only if the store
/// fails.
pub(crate) async fn load_readable(
    store: &dyn Store,
    keys: &[RecordKey],
) -> Result<(Vec<StoredRecord>, Vec<String>), Fault> {
    match store.load(keys).await {
        Ok(found) => return Ok((found.into_iter().flatten().collect(), Vec::new())),
        Err(Fault::Permanent(_)) => {}
        Err(fault) => return Err(fault),
    }
    // At least one record cannot be read. Loading each one separately finds out which.
    let (mut readable, mut unreadable) = (Vec::new(), Vec::new());
    for key in keys {
        match store.load(std::slice::from_ref(key)).await {
            Ok(found) => readable.extend(found.into_iter().flatten()),
            Err(Fault::Permanent(reason)) => unreadable.push(reason),
            Err(fault) => return Err(fault),
        }
    }
    Ok((readable, unreadable))
}

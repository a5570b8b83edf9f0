//! Records that are stored and cannot be read. They must not stop what does not need them: lists, walks and turns name
//! them and continue, and a command that replaces or deletes such a record can do so by its key.

use std::fmt;

use cronhold_core::record::{RecordKey, RecordVersion, StoredRecord};

use crate::{Fault, Store};

/// A stored record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRecord {
    /// The key; `None` if the key cannot be read either, so that only `reason` names the record.
    pub key: Option<RecordKey>,
    /// The version, which a commit compares to replace or delete the record; `None` if it is not known.
    pub version: Option<RecordVersion>,
    /// Where the record is stored and why it cannot be read.
    pub reason: String,
}

impl fmt::Display for UnreadableRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "cannot read {key}: {}", self.reason),
            None => write!(f, "cannot read a record: {}", self.reason),
        }
    }
}

/// The result of loading records of which some may be unreadable.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadableRecords {
    /// The records that can be read, in the order of their keys; `None` for those that do not exist.
    pub records: Vec<(RecordKey, Option<StoredRecord>)>,
    pub unreadable: Vec<UnreadableRecord>,
}

/// Loads records like [`Store::load`], but an unreadable one does not make the others fail. Fails only if the store does.
pub async fn load_readable(store: &dyn Store, keys: &[RecordKey]) -> Result<ReadableRecords, Fault> {
    let fault = match store.load(keys).await {
        Ok(found) => {
            let records = keys.iter().cloned().zip(found).collect();
            return Ok(ReadableRecords { records, unreadable: Vec::new() });
        }
        Err(fault) => fault,
    };
    if fault.is_transient() {
        return Err(fault);
    }
    // At least one record cannot be read. Loading each one separately finds out which.
    let mut loaded = ReadableRecords::default();
    for key in keys {
        match store.load(std::slice::from_ref(key)).await {
            Ok(found) => loaded.records.push((key.clone(), found.into_iter().next().flatten())),
            Err(fault) => loaded.unreadable.push(fault.into_unreadable(key)?),
        }
    }
    Ok(loaded)
}

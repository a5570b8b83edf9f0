//! A unit with the encoded form of the records that it writes, which is prepared before the commit is requested.

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{RecordKey, RecordKind};
use cronhold_store::{Fault, StoreLimits, Unit};

use crate::paths::ZnodePaths;
use crate::record_text;
use crate::wire::WRITE_OPERATION_BYTES;

/// Bytes of the text of a lock, at most.
const LOCK_BYTES: usize = 120;

/// A unit that is ready to be sent.
#[derive(Debug)]
pub(crate) struct TransactionUnit {
    pub(super) unit: Unit,
    /// The data of each change; empty for a deletion.
    data: Vec<Vec<u8>>,
    /// Bytes of the unit in a transaction, at most.
    pub(super) bytes: usize,
}

impl TransactionUnit {
    pub(crate) fn new(paths: &ZnodePaths, unit: Unit) -> Self {
        let encode = |change: &RecordChange| match change {
            RecordChange::Put(record) => record_text::encode(unit.version, record),
            RecordChange::Delete(_) => Vec::new(),
        };
        let data: Vec<Vec<u8>> = unit.changes.iter().map(encode).collect();
        let compared = unit.compare.iter().map(|(key, _)| Self::compared_bytes(paths, key));
        let locks = unit.take.iter().map(|take| &take.lock).chain(unit.free.iter().map(|free| &free.lock));
        let bytes = data.iter().map(Vec::len).sum::<usize>()
            + compared.sum::<usize>()
            + locks.map(|name| paths.lock(name).len() + WRITE_OPERATION_BYTES + LOCK_BYTES).sum::<usize>();
        Self { unit, data, bytes }
    }

    /// Bytes of the operations on a record that a unit compares, besides its data. A record that must not exist is created
    /// and deleted.
    pub(crate) fn compared_bytes(paths: &ZnodePaths, key: &RecordKey) -> usize {
        paths.record(key).map_or(0, |path| 2 * (path.len() + WRITE_OPERATION_BYTES))
    }

    /// The data that the unit writes for a record; empty if it deletes the record or does not change it.
    pub(super) fn data_of(&self, key: &RecordKey) -> &[u8] {
        let place = self.unit.changes.iter().position(|change| match change {
            RecordChange::Put(record) => record.key() == *key,
            RecordChange::Delete(deleted) => deleted == key,
        });
        place.map_or(&[], |place| &self.data[place])
    }

    /// The keys of the records whose znodes the unit checks or writes.
    pub(super) fn keys(&self) -> impl Iterator<Item = &RecordKey> {
        let keys = self.unit.compare.iter().map(|(key, _)| key);
        keys.filter(|key| !matches!(key.kind(), RecordKind::Lock | RecordKind::Foreign))
    }

    /// Whether the unit has an operation on a znode.
    pub(super) fn has_path(&self, paths: &ZnodePaths, path: &str) -> bool {
        let locks = self.unit.take.iter().map(|take| &take.lock).chain(self.unit.free.iter().map(|free| &free.lock));
        let mut records = self.keys().filter_map(|key| paths.record(key));
        records.any(|other| other == path) || locks.into_iter().any(|name| paths.lock(name) == path)
    }

    /// Fails if the unit exceeds a limit of the store, or if no transaction can hold it.
    pub(super) fn check_size(&self, limits: &StoreLimits, most: usize) -> Result<(), Fault> {
        let bytes = self.bytes;
        // Most units are far below all limits.
        if limits.record.is_none_or(|record| bytes as u64 <= record) {
            return Ok(());
        }
        limits.check_unit(&self.unit, |record| self.data_of(&record.key()).len() as u64)?;
        if bytes <= most {
            return Ok(());
        }
        Err(Fault::Permanent(format!(
            "a change of {bytes} bytes is larger than the {most} bytes that ZooKeeper accepts in one request; make the job \
             smaller, or raise `jute.maxbuffer` on all servers and `max_bytes` in the URL"
        )))
    }
}

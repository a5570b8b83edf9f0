//! Units whose outcome is unknown, because the store did not answer their commit. Reading the records shows whether the
//! unit took effect.

use cronhold_core::record::{LockName, Record, RecordKey};

use crate::writer_session::WriterSession;
use crate::{Fault, Unit, UnitReceipt, UnitRefusal};

/// How often the records of a unit are read, and the unit is submitted again.
const LOOKUPS_MAX: usize = 3;

impl WriterSession {
    /// Finds out whether a unit took effect. If one of its records has its version, it did. If all records are as they
    /// were, the same unit is submitted again.
    pub(crate) async fn resolve_unknown(&self, unit: &Unit) -> Result<UnitReceipt, UnitRefusal> {
        let keys: Vec<RecordKey> = unit.compare.iter().map(|(key, _)| key.clone()).collect();
        for _ in 0..LOOKUPS_MAX {
            let found = self.store.load(&keys).await.map_err(|fault| Fault::OutcomeUnknown(fault.to_string()))?;
            if found.iter().flatten().any(|stored| stored.version == unit.version) {
                let fences = self.load_fences(unit).await.map_err(|fault| Fault::OutcomeUnknown(fault.to_string()))?;
                return Ok(UnitReceipt { fences });
            }
            let expected = unit.compare.iter().map(|(_, version)| *version);
            if !found.iter().map(|stored| stored.as_ref().map(|stored| stored.version)).eq(expected) {
                return Err(UnitRefusal::Conflict(keys[0].clone()));
            }
            match self.store.commit(vec![unit.clone()]).await.pop() {
                // The first submission may have arrived in the meantime, or may still arrive.
                Some(Err(UnitRefusal::Fault(_) | UnitRefusal::Conflict(_))) | None => {}
                Some(known) => return known,
            }
        }
        Err(Fault::OutcomeUnknown("the store did not answer".to_owned()).into())
    }

    async fn load_fences(&self, unit: &Unit) -> Result<Vec<(LockName, u64)>, Fault> {
        let keys: Vec<RecordKey> = unit.take.iter().map(|take| RecordKey::Lock(take.lock.clone())).collect();
        let found = self.store.load(&keys).await?;
        let fence = |record| match record {
            Record::Lock(lock) => Some((lock.name.clone(), lock.fence)),
            _ => None,
        };
        Ok(found.into_iter().flatten().filter_map(|stored| fence(stored.record)).collect())
    }
}

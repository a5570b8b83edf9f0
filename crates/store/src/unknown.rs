//! Units whose outcome nobody knows: the store was asked and did not answer. Only reading tells.

use cronhold_core::record::{Key, LockName, Record};

use crate::desk::Desk;
use crate::{Committed, Fault, Refusal, Unit};

/// A unit with an unknown outcome is looked up and sent again so many times.
const LOOKUPS_MAX: usize = 3;

impl Desk {
    /// Finds out whether a unit was done, by reading. Its version on one of its records says that it was; when all are
    /// as they were, the very same unit is sent again.
    pub(crate) async fn find_out(&self, unit: &Unit) -> Result<Committed, Refusal> {
        let keys: Vec<Key> = unit.compare.iter().map(|(key, _)| key.clone()).collect();
        for _ in 0..LOOKUPS_MAX {
            let found = self.store.load(&keys).await.map_err(|fault| Fault::Unknown(fault.to_string()))?;
            if found.iter().flatten().any(|stored| stored.version == unit.version) {
                let fences = self.fences(unit).await.map_err(|fault| Fault::Unknown(fault.to_string()))?;
                return Ok(Committed { fences });
            }
            let expected = unit.compare.iter().map(|(_, version)| *version);
            if !found.iter().map(|stored| stored.as_ref().map(|stored| stored.version)).eq(expected) {
                return Err(Refusal::Conflict(keys[0].clone()));
            }
            match self.store.commit(vec![unit.clone()]).await.pop() {
                // The one that was sent first may have arrived in the meantime, or still do so.
                Some(Err(Refusal::Fault(_) | Refusal::Conflict(_))) | None => {}
                Some(known) => return known,
            }
        }
        Err(Fault::Unknown("the store did not answer".to_owned()).into())
    }

    async fn fences(&self, unit: &Unit) -> Result<Vec<(LockName, u64)>, Fault> {
        let keys: Vec<Key> = unit.take.iter().map(|take| Key::Lock(take.lock.clone())).collect();
        let found = self.store.load(&keys).await?;
        let fence = |record| match record {
            Record::Lock(lock) => Some((lock.name.clone(), lock.fence)),
            _ => None,
        };
        Ok(found.into_iter().flatten().filter_map(|stored| fence(stored.record)).collect())
    }
}

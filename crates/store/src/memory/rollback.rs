//! Rollbacks of the reference store, for the simulation: it forgets what was written since a snapshot, and lost records
//! are restored. Which records are restored, and which of two versions wins, is decided elsewhere.

use cronhold_core::record::{RecordKey, StoredRecord};

use super::MemoryStore;
use super::state::MemoryState;
use crate::rollback::JournaledLock;

/// The contents of a store at a moment.
#[derive(Debug, Clone)]
pub struct MemorySnapshot(MemoryState);

impl MemoryStore {
    /// The contents of the store now.
    pub fn snapshot(&self) -> MemorySnapshot {
        MemorySnapshot(self.state().clone())
    }

    /// Forgets everything since a snapshot. Locks expire as if they had not been renewed since.
    pub fn roll_back(&self, to: MemorySnapshot) {
        self.state().roll_back(to.0);
    }

    /// Writes restored records with their versions (`None` deletes a record), and then takes locks of unfinished
    /// runs and of Cronhold itself, unless they are held. All other handles are notified.
    pub fn restore(&self, records: Vec<(RecordKey, Option<StoredRecord>)>, locks: &[JournaledLock]) {
        let now = self.now();
        let mut state = self.state();
        records.into_iter().for_each(|(key, record)| state.restore(key, record));
        for lock in locks {
            if lock.take.lock.is_reserved() || state.records.is_unfinished(lock.take.holder) {
                state.locks.restore(&lock.take, lock.version, lock.fence.unwrap_or(0), now);
            }
        }
        self.publish(state);
    }

    /// Assigns only numbers above this one to new writers.
    pub fn raise_writers(&self, writer: u32) {
        self.state().raise_writers(writer);
    }
}

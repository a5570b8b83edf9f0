//! A memory store that can lose replies, reject writes, or be unreachable.

use std::sync::{Arc, Mutex};

use cronhold_core::record::{RecordKey, StoredRecord};
use cronhold_store::{Fault, MemoryStore, Pending, Store, Unit, UnitReceipt, UnitRefusal, Wrapper};

/// How the store fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultMode {
    /// It works.
    None,
    /// It applies the next commit without a reply, and works afterwards.
    CommitsWithoutAnswer,
    /// It neither applies nor confirms the next commit, and works afterwards.
    LosesCommit,
    /// It neither applies nor confirms any commit.
    LosesEveryCommit,
    /// It rejects all writes.
    ReadOnly,
    /// It can be neither read nor written.
    Unreachable,
    /// Its job `bad` cannot be read.
    UnreadableJob,
}

/// A memory store that fails on request. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct FaultyStore {
    store: MemoryStore,
    mode: Arc<Mutex<FaultMode>>,
}

impl FaultyStore {
    pub(crate) fn new(store: MemoryStore) -> Self {
        Self { store, mode: Arc::new(Mutex::new(FaultMode::None)) }
    }

    pub(crate) fn set(&self, mode: FaultMode) {
        *self.mode.lock().expect("no panic") = mode;
    }

    fn mode(&self) -> FaultMode {
        *self.mode.lock().expect("no panic")
    }
}

fn unknown() -> UnitRefusal {
    Fault::OutcomeUnknown("no answer".to_owned()).into()
}

impl Wrapper for FaultyStore {
    fn inside(&self) -> &dyn Store {
        &self.store
    }

    fn load<'a>(&'a self, keys: &'a [RecordKey]) -> Pending<'a, Result<Vec<Option<StoredRecord>>, Fault>> {
        if self.mode() == FaultMode::Unreachable {
            return Box::pin(async { Err(Fault::Unavailable("no connection".to_owned())) });
        }
        let is_bad = |key: &RecordKey| matches!(key, RecordKey::Job(job) if job.as_str() == "bad");
        if self.mode() == FaultMode::UnreadableJob && keys.iter().any(is_bad) {
            return Box::pin(async { Err(Fault::Permanent("not a job".to_owned())) });
        }
        self.store.load(keys)
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        let mode = self.mode();
        if matches!(mode, FaultMode::CommitsWithoutAnswer | FaultMode::LosesCommit) {
            self.set(FaultMode::None);
        }
        let count = units.len();
        Box::pin(async move {
            match mode {
                FaultMode::None | FaultMode::UnreadableJob => self.store.commit(units).await,
                FaultMode::CommitsWithoutAnswer => {
                    self.store.commit(units).await;
                    vec![Err(unknown()); count]
                }
                FaultMode::LosesCommit | FaultMode::LosesEveryCommit => vec![Err(unknown()); count],
                FaultMode::ReadOnly => vec![Err(Fault::ReadOnly("the disk is full".to_owned()).into()); count],
                FaultMode::Unreachable => vec![Err(Fault::Unavailable("no connection".to_owned()).into()); count],
            }
        })
    }
}

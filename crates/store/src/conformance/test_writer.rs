//! A writer for the cases: it enrolls, numbers its units, waits for every reply, and panics with what it expected if
//! the store replies otherwise.

use std::sync::Arc;

use cronhold_core::decision::{LockRelease, LockTake, RecordChange};
use cronhold_core::record::{LockName, LockState, NodeRecord, Record, RecordKey, RecordVersion, StoredRecord};
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Span;

use super::{Subject, block_on};
use crate::{DefinitionPage, Page, Query, Store, Unit, UnitReceipt, UnitRefusal};

/// An enrolled writer with its own handle.
#[derive(Debug)]
pub(crate) struct TestWriter {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) writer: u32,
    units: u64,
}

impl TestWriter {
    /// Enrolls with a new handle.
    pub(crate) fn of(subject: &dyn Subject) -> Self {
        Self::on(subject.store())
    }

    /// Enrolls with this handle.
    pub(crate) fn on(store: Arc<dyn Store>) -> Self {
        let writer = block_on(store.enroll()).expect("writers can enroll").0;
        Self { store, writer, units: 0 }
    }

    /// An empty unit.
    pub(crate) fn unit(&mut self) -> TestUnit {
        self.units += 1;
        let version = RecordVersion::new(self.writer, self.units);
        TestUnit(Unit { version, compare: Vec::new(), changes: Vec::new(), take: Vec::new(), free: Vec::new() })
    }

    /// Commits one unit.
    pub(crate) fn commit(&self, draft: TestUnit) -> Result<UnitReceipt, UnitRefusal> {
        let mut results = self.commit_all(vec![draft]);
        assert_eq!(results.len(), 1, "one unit has one answer");
        results.pop().expect("there is one")
    }

    /// Commits units together.
    pub(crate) fn commit_all(&self, drafts: Vec<TestUnit>) -> Vec<Result<UnitReceipt, UnitRefusal>> {
        block_on(self.store.commit(drafts.into_iter().map(|draft| draft.0).collect()))
    }

    /// Writes a record unconditionally.
    pub(crate) fn put(&mut self, record: &Record) -> RecordVersion {
        self.put_all(std::slice::from_ref(record))
    }

    /// Writes records in one unit, unconditionally.
    pub(crate) fn put_all(&mut self, records: &[Record]) -> RecordVersion {
        let keys: Vec<RecordKey> = records.iter().map(Record::key).collect();
        let versions = self.load_all(&keys).into_iter().map(|stored| stored.map(|stored| stored.version));
        let mut draft = self.unit();
        for (record, version) in records.iter().zip(versions) {
            draft = draft.put(record.clone(), version);
        }
        let version = draft.version();
        assert_eq!(self.commit(draft), Ok(UnitReceipt::default()), "{keys:?} can be written");
        version
    }

    /// Deletes a record unconditionally.
    pub(crate) fn delete(&mut self, key: &RecordKey) {
        let version = self.version(key);
        let draft = self.unit().delete(key.clone(), version);
        assert_eq!(self.commit(draft), Ok(UnitReceipt::default()), "{key} can be deleted");
    }

    pub(crate) fn load(&self, key: &RecordKey) -> Option<StoredRecord> {
        self.load_all(std::slice::from_ref(key)).pop().expect("one key has one answer")
    }

    pub(crate) fn load_all(&self, keys: &[RecordKey]) -> Vec<Option<StoredRecord>> {
        let found = block_on(self.store.load(keys)).expect("records can be loaded");
        assert_eq!(found.len(), keys.len(), "each key has an answer");
        found
    }

    /// A record without its version.
    pub(crate) fn record(&self, key: &RecordKey) -> Option<Record> {
        self.load(key).map(|stored| stored.record)
    }

    pub(crate) fn version(&self, key: &RecordKey) -> Option<RecordVersion> {
        self.load(key).map(|stored| stored.version)
    }

    pub(crate) fn page(&self, query: &Query, limit: usize) -> Page {
        block_on(self.store.page(query, limit)).expect("pages can be read")
    }

    pub(crate) fn definitions(&self, after: Option<&JobId>, limit: usize) -> DefinitionPage {
        block_on(self.store.definitions(after, limit)).expect("definitions can be read")
    }

    /// Takes a lock in a separate unit and returns its fence.
    pub(crate) fn take(&mut self, lock: &LockName, holder: RunId, ttl: Option<Span>) -> Result<u64, UnitRefusal> {
        let draft = self.unit().take(lock, holder, ttl);
        let UnitReceipt { fences } = self.commit(draft)?;
        assert_eq!(fences.len(), 1, "one lock that was taken has one fence");
        assert_eq!(fences[0].0, *lock, "the fence is that of the lock");
        Ok(fences[0].1)
    }

    /// Releases a lock in a separate unit.
    pub(crate) fn free(&mut self, lock: &LockName, holder: RunId) {
        let draft = self.unit().free(lock, holder);
        assert_eq!(self.commit(draft), Ok(UnitReceipt::default()), "freeing is always done");
    }

    /// The state of a held lock.
    pub(crate) fn lock(&self, lock: &LockName) -> Option<LockState> {
        match self.record(&RecordKey::Lock(lock.clone()))? {
            Record::Lock(state) => Some((*state).clone()),
            other => panic!("a lock is a lock, and not {other:?}"),
        }
    }

    /// The holder of a lock.
    pub(crate) fn holder(&self, lock: &LockName) -> Option<RunId> {
        self.lock(lock).map(|state| state.holder)
    }

    pub(crate) fn beat(&self, node: &NodeRecord, locks: &[(LockName, RunId)]) -> Vec<(LockName, RunId)> {
        block_on(self.store.beat(node, locks)).expect("a node can beat")
    }
}

/// Builds a unit.
#[derive(Debug, Clone)]
pub(crate) struct TestUnit(pub(crate) Unit);

impl TestUnit {
    /// The unit.
    pub(crate) fn into_unit(self) -> Unit {
        self.0
    }

    pub(crate) fn version(&self) -> RecordVersion {
        self.0.version
    }

    /// Compares a record.
    pub(crate) fn compare(mut self, key: RecordKey, version: Option<RecordVersion>) -> Self {
        self.0.compare.push((key, version));
        self
    }

    /// Compares and writes a record.
    pub(crate) fn put(mut self, record: Record, version: Option<RecordVersion>) -> Self {
        self.0.compare.push((record.key(), version));
        self.0.changes.push(RecordChange::Put(record));
        self
    }

    /// Compares and deletes a record.
    pub(crate) fn delete(mut self, key: RecordKey, version: Option<RecordVersion>) -> Self {
        self.0.compare.push((key.clone(), version));
        self.0.changes.push(RecordChange::Delete(key));
        self
    }

    pub(crate) fn take(mut self, lock: &LockName, holder: RunId, ttl: Option<Span>) -> Self {
        self.0.take.push(LockTake { lock: lock.clone(), holder, ttl });
        self
    }

    pub(crate) fn free(mut self, lock: &LockName, holder: RunId) -> Self {
        self.0.free.push(LockRelease { lock: lock.clone(), holder });
        self
    }
}

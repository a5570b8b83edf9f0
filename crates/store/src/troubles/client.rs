//! A process of the cases: it has its own handle, waits while the servers do not reply, and finds out what has become of
//! a commit without a reply.

use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::record::{LockName, LockState, NodeRecord, Record, RecordKey, RecordVersion, StoredRecord};

use super::FailingServers;
use super::waiting::until;
use crate::conformance::block_on;
use crate::conformance::samples::{counter, job_state};
use crate::conformance::test_writer::TestUnit;
use crate::{Fault, Store, Unit, UnitReceipt, UnitRefusal};

/// A process with an enrolled writer.
#[derive(Debug)]
pub(super) struct ClientProcess {
    pub(super) store: Arc<dyn Store>,
    writer: u32,
    units: u64,
}

/// A lock and the run that is said to hold it.
pub(super) type LockOfRun = (LockName, RunId);

impl ClientProcess {
    /// Opens a handle and enrolls, as soon as the servers accept it.
    pub(super) fn start(servers: &dyn FailingServers) -> Self {
        let store = servers.open();
        let writer = until("a writer enrolls", || unless_transient(block_on(store.enroll()))).0;
        Self { store, writer, units: 0 }
    }

    /// An empty unit.
    pub(super) fn unit(&mut self) -> TestUnit {
        self.units += 1;
        let version = RecordVersion::new(self.writer, self.units);
        TestUnit(Unit { version, compare: Vec::new(), changes: Vec::new(), take: Vec::new(), free: Vec::new() })
    }

    /// Commits a unit once.
    pub(super) fn commit(&self, unit: TestUnit) -> Result<UnitReceipt, UnitRefusal> {
        let mut results = block_on(self.store.commit(vec![unit.into_unit()]));
        assert_eq!(results.len(), 1, "one unit has one result");
        results.remove(0)
    }

    /// Commits a unit once, which must fail, and returns why.
    pub(super) fn expect_commit_fault(&self, unit: TestUnit) -> Fault {
        match self.commit(unit) {
            Err(UnitRefusal::Fault(fault)) => fault,
            other => panic!("a fault was expected: {other:?}"),
        }
    }

    /// Commits a unit until its outcome is known. A unit that took effect although its reply was lost is a conflict with
    /// its own records.
    pub(super) fn settle(&self, unit: &TestUnit) -> Result<UnitReceipt, UnitRefusal> {
        until("the outcome of a unit is known", || match self.commit(unit.clone()) {
            Err(UnitRefusal::Fault(fault)) if fault.is_transient() => None,
            Err(UnitRefusal::Conflict(key)) => {
                let took_effect = self.version(&key) == Some(unit.version());
                Some(if took_effect { Ok(UnitReceipt::default()) } else { Err(UnitRefusal::Conflict(key)) })
            }
            known => Some(known),
        })
    }

    /// Increments the number in the state of the job `counter`. The state of the job `name` says that it is done.
    pub(super) fn increment(&mut self, name: &str) {
        let (counter_key, done_key) = (job_state("counter", 0).key(), job_state(name, 0).key());
        until("an increment is done", || {
            let found = self.load(&[counter_key.clone(), done_key.clone()]);
            // A commit without a reply took effect.
            if found[1].is_some() {
                return Some(());
            }
            let number = found[0].as_ref().map_or(0, |stored| counter(&stored.record));
            let version = found[0].as_ref().map(|stored| stored.version);
            let unit = self.unit().put(job_state("counter", number + 1), version).put(job_state(name, 1), None);
            match self.commit(unit) {
                Ok(_) => Some(()),
                Err(UnitRefusal::Conflict(_)) => None,
                Err(UnitRefusal::Fault(fault)) if fault.is_transient() => None,
                Err(refusal) => panic!("{refusal}"),
            }
        });
    }

    /// Writes a record, whatever the store has now.
    pub(super) fn put(&mut self, record: &Record) {
        self.put_with_locks(record, &[]);
    }

    /// Writes a record and takes locks for 300 seconds in one unit.
    pub(super) fn put_with_locks(&mut self, record: &Record, locks: &[LockOfRun]) {
        let version = self.version(&record.key());
        let mut unit = self.unit().put(record.clone(), version);
        for (lock, holder) in locks {
            unit = unit.take(lock, *holder, Some(super::LONG_TTL));
        }
        self.settle(&unit).expect("nothing else writes the record");
    }

    pub(super) fn delete(&mut self, key: &RecordKey) {
        let version = self.version(key);
        let unit = self.unit().delete(key.clone(), version);
        self.settle(&unit).expect("nothing else writes the record");
    }

    /// Loads records, as soon as the servers reply.
    pub(super) fn load(&self, keys: &[RecordKey]) -> Vec<Option<StoredRecord>> {
        until("records can be read", || unless_transient(block_on(self.store.load(keys))))
    }

    pub(super) fn version(&self, key: &RecordKey) -> Option<RecordVersion> {
        self.load(std::slice::from_ref(key)).remove(0).map(|stored| stored.version)
    }

    pub(super) fn get(&self, key: &RecordKey) -> Option<Record> {
        self.load(std::slice::from_ref(key)).remove(0).map(|stored| stored.record)
    }

    /// The state of a held lock.
    pub(super) fn lock(&self, lock: &LockName) -> Option<LockState> {
        match self.get(&RecordKey::Lock(lock.clone()))? {
            Record::Lock(state) => Some((*state).clone()),
            other => panic!("a lock was expected: {other:?}"),
        }
    }

    /// Sends heartbeats until one is confirmed, and returns the locks that it reports as lost.
    pub(super) fn beat(&self, node: &NodeRecord, locks: &[LockOfRun]) -> Vec<LockOfRun> {
        until("a heartbeat is confirmed", || unless_transient(block_on(self.store.beat(node, locks))))
    }
}

/// The value; `None` if a retry can help. A permanent fault ends the case.
pub(super) fn unless_transient<T>(result: Result<T, Fault>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(fault) if fault.is_transient() => None,
        Err(fault) => panic!("{fault}"),
    }
}

/// Asserts that a request without a reply is said to be either not sent or of unknown outcome.
pub(super) fn assert_without_reply(fault: &Fault) {
    assert!(matches!(fault, Fault::Unavailable(_) | Fault::OutcomeUnknown(_)), "{fault}");
}

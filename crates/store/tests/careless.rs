//! The suite must be able to fail: each store here has one flaw, and the listed cases must detect it.
#![cfg(feature = "conformance")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use cronhold_core::RunId;
use cronhold_core::record::{LockName, NodeRecord, Record, RecordKey, StoredRecord};
use cronhold_schedule::{Instant, Span};
use cronhold_store::conformance::{CASES, Subject};
use cronhold_store::{Fault, MemoryStore, Page, Pending, Query, Store, Unit, UnitReceipt, UnitRefusal, Wrapper};

/// The flaw of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    /// It checks a unit and applies it later, without regard to changes in between.
    LooksTooEarly,
    /// It does not compare records that a unit does not change.
    ComparesOnlyChanges,
    /// It applies the changes of a unit one by one.
    DoesUnitsInParts,
    /// It takes locks that another run holds.
    TakesHeldLocks,
    /// It does not renew locks.
    ForgetsBeats,
    /// It loads records one after the other.
    LoadsOneByOne,
    /// It appends bytes that it already has.
    AppendsTwice,
    /// It truncates pages.
    ShortPages,
    /// It drops one field of a record.
    ForgetsExits,
}

/// A store with one flaw.
#[derive(Debug)]
struct Careless {
    store: MemoryStore,
    flaw: Flaw,
}

impl Careless {
    /// Commits a unit without what the flaw leaves out.
    async fn commit_one(&self, mut unit: Unit) -> Result<UnitReceipt, UnitRefusal> {
        match self.flaw {
            Flaw::LooksTooEarly => {
                let keys: Vec<RecordKey> = unit.compare.iter().map(|(key, _)| key.clone()).collect();
                for ((key, expected), found) in unit.compare.iter().zip(self.store.load(&keys).await?) {
                    if found.map(|stored| stored.version) != *expected {
                        return Err(UnitRefusal::Conflict(key.clone()));
                    }
                }
                thread::yield_now();
                self.compare_nothing(&mut unit).await?;
            }
            Flaw::ComparesOnlyChanges => {
                let changed: Vec<RecordKey> = unit.changes.iter().map(|change| change.key()).collect();
                unit.compare.retain(|(key, _)| changed.contains(key));
            }
            Flaw::DoesUnitsInParts => {
                for change in std::mem::take(&mut unit.changes) {
                    let compare: Vec<_> =
                        unit.compare.iter().filter(|(key, _)| *key == change.key()).cloned().collect();
                    let part = Unit { compare, changes: vec![change], take: vec![], free: vec![], ..unit.clone() };
                    self.send(part).await?;
                }
                unit.compare.clear();
            }
            Flaw::TakesHeldLocks => {
                for take in &unit.take {
                    let found = self.store.load(&[RecordKey::Lock(take.lock.clone())]).await?;
                    if let Some(Some(StoredRecord { record: Record::Lock(lock), .. })) = found.first() {
                        let free =
                            cronhold_core::decision::LockRelease { lock: take.lock.clone(), holder: lock.holder };
                        unit.free.push(free);
                    }
                }
            }
            Flaw::ForgetsExits => {
                for change in &mut unit.changes {
                    if let cronhold_core::decision::RecordChange::Put(Record::Run(run)) = change {
                        Arc::make_mut(run).exit = None;
                    }
                }
            }
            _ => {}
        }
        self.send(unit).await
    }

    /// Replaces the expected versions of a unit by the current ones.
    async fn compare_nothing(&self, unit: &mut Unit) -> Result<(), Fault> {
        let keys: Vec<RecordKey> = unit.compare.iter().map(|(key, _)| key.clone()).collect();
        let found = self.store.load(&keys).await?.into_iter().map(|found| found.map(|stored| stored.version));
        unit.compare = keys.into_iter().zip(found).collect();
        Ok(())
    }

    async fn send(&self, unit: Unit) -> Result<UnitReceipt, UnitRefusal> {
        self.store.commit(vec![unit]).await.pop().expect("one unit has one answer")
    }
}

impl Wrapper for Careless {
    fn inside(&self) -> &dyn Store {
        &self.store
    }

    fn load<'a>(&'a self, keys: &'a [RecordKey]) -> Pending<'a, Result<Vec<Option<StoredRecord>>, Fault>> {
        if self.flaw != Flaw::LoadsOneByOne {
            return self.store.load(keys);
        }
        Box::pin(async move {
            let mut found = Vec::new();
            for key in keys {
                found.extend(self.store.load(std::slice::from_ref(key)).await?);
                thread::yield_now();
            }
            Ok(found)
        })
    }

    fn commit(&self, units: Vec<Unit>) -> Pending<'_, Vec<Result<UnitReceipt, UnitRefusal>>> {
        Box::pin(async move {
            let mut results = Vec::new();
            for unit in units {
                results.push(self.commit_one(unit).await);
            }
            results
        })
    }

    fn page<'a>(&'a self, query: &'a Query, limit: usize) -> Pending<'a, Result<Page, Fault>> {
        let is_short = self.flaw == Flaw::ShortPages && limit > 1;
        self.store.page(query, if is_short { limit - 1 } else { limit })
    }

    fn append<'a>(&'a self, run: RunId, from: u64, bytes: &'a [u8]) -> Pending<'a, Result<u64, Fault>> {
        Box::pin(async move {
            let is_doubled = self.flaw == Flaw::AppendsTwice;
            let end = self.store.read(run, 0, 0).await?.length;
            self.store.append(run, if is_doubled && from <= end { end } else { from }, bytes).await
        })
    }

    fn beat<'a>(
        &'a self,
        node: &'a NodeRecord,
        locks: &'a [(LockName, RunId)],
    ) -> Pending<'a, Result<Vec<(LockName, RunId)>, Fault>> {
        let locks = if self.flaw == Flaw::ForgetsBeats { &[][..] } else { locks };
        self.store.beat(node, locks)
    }
}

struct Flawed {
    store: MemoryStore,
    micros: Arc<AtomicI64>,
    flaw: Flaw,
}

impl Subject for Flawed {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(Careless { store: self.store.clone(), flaw: self.flaw })
    }

    fn pass(&self, span: Span) {
        self.micros.fetch_add(i64::try_from(span.micros()).expect("little time passes"), Ordering::SeqCst);
    }

    fn reopen(&self) -> Arc<dyn Store> {
        self.store()
    }
}

/// Whether a case detects a flaw.
fn notices(name: &str, flaw: Flaw) -> bool {
    let (_, case) = CASES.iter().find(|(other, _)| *other == name).expect("there is such a case");
    let micros = Arc::new(AtomicI64::new(1_800_000_000_000_000));
    let clock = Arc::clone(&micros);
    let store = MemoryStore::new(Arc::new(move || Instant::from_micros(clock.load(Ordering::SeqCst))));
    let subject = Flawed { store, micros, flaw };
    catch_unwind(AssertUnwindSafe(|| case(&subject))).is_err()
}

#[test]
fn conformance_suite_detects_every_flaw() {
    for (flaw, cases) in [
        (Flaw::LooksTooEarly, &["claims_are_linearizable", "concurrent_increments_add_up"][..]),
        (Flaw::ComparesOnlyChanges, &["records_can_be_compared_without_a_change"]),
        (Flaw::DoesUnitsInParts, &["one_conflict_rejects_the_unit", "one_held_lock_rejects_the_unit"]),
        (Flaw::TakesHeldLocks, &["lock_has_one_holder", "locks_are_linearizable"]),
        (Flaw::ForgetsBeats, &["heartbeats_renew_locks", "heartbeats_report_lost_locks"]),
        (Flaw::LoadsOneByOne, &["load_is_a_snapshot"]),
        (Flaw::AppendsTwice, &["append_can_be_sent_again"]),
        (Flaw::ShortPages, &["lists_are_ordered_by_key", "runs_are_listed_latest_first"]),
        (Flaw::ForgetsExits, &["records_are_returned_as_written"]),
    ] {
        for case in cases {
            assert!(notices(case, flaw), "`{case}` does not notice that a store is wrong: {flaw:?}");
        }
    }
}

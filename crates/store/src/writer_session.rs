//! The session of a writer: its number, its units, and its cache of records. The cache may be out of date. That costs a
//! conflict and never a wrong result, because every commit compares the records that the decision was based on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{LockState, Record, RecordKey, RecordKind, RecordVersion, StoredRecord};
use cronhold_core::view::{RecordOversize, RecordSource};

use crate::hash::SeedlessMap;
use crate::{CommandOutcome, Fault, ReadableRecords, Store, Unit, UnreadableRecord, WriterId, load_readable};

/// The session of a writer on a store. All changes go through its turns; see [`Self::turn`].
#[derive(Debug)]
pub struct WriterSession {
    pub(crate) store: Arc<dyn Store>,
    writer: WriterId,
    units: u64,
    pub(crate) cache: RecordCache,
    /// Records whose commit found a conflict, and those that its decision took to be absent. The next turn loads them.
    pub(crate) unexpected: BTreeSet<RecordKey>,
    /// Records of the commit that is in flight.
    pub(crate) in_flight: RecordMap,
    /// Whether a unit of the last commit failed.
    pub(crate) had_failures: bool,
}

/// Records by key; `None` for those that do not exist.
pub(crate) type RecordMap = SeedlessMap<RecordKey, Option<StoredRecord>>;

/// Records that were read or written lately, in two generations. When the young generation is full it becomes the old
/// one, and the records of the old one are dropped.
#[derive(Debug)]
pub(crate) struct RecordCache {
    young: RecordMap,
    old: RecordMap,
    generation_max: usize,
}

/// The records that the decisions of one turn see. In order of precedence: what earlier decisions of the turn will write,
/// what the previous turn has submitted, what was loaded for this turn, and the cache.
#[derive(Debug)]
pub(crate) struct TurnView<'a> {
    pub(crate) written: RecordMap,
    pub(crate) loaded: RecordMap,
    in_flight: &'a RecordMap,
    cache: &'a RecordCache,
    store: &'a dyn Store,
    /// Records that exist and cannot be read. Only the commands that need them fail.
    unreadable: BTreeMap<RecordKey, UnreadableRecord>,
}

impl WriterSession {
    /// How often a command is decided before it is given up because other writers keep changing the same records.
    pub const ATTEMPTS_MAX: usize = 12;

    /// Starts the session of a new writer. Its cache has `cache_max` records that were used lately, and at most as many
    /// older ones.
    pub async fn new(store: Arc<dyn Store>, cache_max: usize) -> Result<Self, Fault> {
        let writer = store.enroll().await?;
        let cache =
            RecordCache { young: RecordMap::default(), old: RecordMap::default(), generation_max: cache_max.max(1) };
        Ok(Self {
            store,
            writer,
            units: 0,
            cache,
            unexpected: BTreeSet::new(),
            in_flight: RecordMap::default(),
            had_failures: false,
        })
    }

    /// The store of the session.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The number of the writer, which is new for every session.
    pub fn writer(&self) -> u32 {
        self.writer.0
    }

    /// A record from the cache. It may be out of date.
    pub fn cached(&self, key: &RecordKey) -> Option<&Record> {
        self.cache.get(key)?.as_ref().map(|stored| &stored.record)
    }

    /// Whether a unit of the last completed commit failed. Then commands without writes that were decided on top of it
    /// have to be decided again.
    pub fn had_failures(&self) -> bool {
        self.had_failures
    }

    /// Removes a record from the cache, because another writer may have changed it.
    pub fn evict(&mut self, key: &RecordKey) {
        self.cache.evict(key);
    }

    pub(crate) fn next_version(&mut self) -> RecordVersion {
        self.units += 1;
        RecordVersion::new(self.writer.0, self.units)
    }
}

impl RecordCache {
    fn get(&self, key: &RecordKey) -> Option<&Option<StoredRecord>> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    pub(crate) fn evict(&mut self, key: &RecordKey) {
        self.young.remove(key);
        self.old.remove(key);
    }

    /// Inserts what a committed unit has written.
    pub(crate) fn apply(&mut self, unit: &Unit) {
        for change in &unit.changes {
            match change {
                RecordChange::Put(record) => {
                    self.insert(record.key(), Some(StoredRecord { version: unit.version, record: record.clone() }));
                }
                // The ids of runs are not used again, so nothing asks for a deleted one.
                RecordChange::Delete(key @ (RecordKey::Run(_) | RecordKey::SkipSpan(_))) => self.evict(key),
                RecordChange::Delete(key) => self.insert(key.clone(), None),
            }
        }
    }

    /// Keeps the jobs among records that were read. Others that are read often are also written, and so kept.
    pub(crate) fn keep_jobs<'k>(&mut self, keys: impl IntoIterator<Item = &'k RecordKey>) {
        if self.old.is_empty() {
            return;
        }
        for key in keys.into_iter().filter(|key| key.kind() == RecordKind::Job) {
            if let Some((key, stored)) = self.old.remove_entry(key) {
                self.young.insert(key, stored);
            }
        }
    }

    pub(crate) fn insert(&mut self, key: RecordKey, stored: Option<StoredRecord>) {
        let is_over = match stored.as_ref().map(|stored| &stored.record) {
            Some(Record::Run(run)) => run.state.is_finished(),
            Some(Record::SkipSpan(_)) => true,
            Some(Record::Action(action)) => !action.is_pending(),
            _ => false,
        };
        // Finished runs, spans and actions that are done are rarely read again. Locks expire, and foreign runs change, without a notification.
        if is_over || matches!(key.kind(), RecordKind::Lock | RecordKind::Foreign) {
            return self.evict(&key);
        }
        self.old.remove(&key);
        self.young.insert(key, stored);
        if self.young.len() > self.generation_max {
            self.old = std::mem::take(&mut self.young);
        }
    }
}

impl<'a> TurnView<'a> {
    pub(crate) fn new(store: &'a dyn Store, cache: &'a RecordCache, in_flight: &'a RecordMap) -> Self {
        let (written, loaded) = (RecordMap::default(), RecordMap::default());
        Self { written, loaded, in_flight, cache, store, unreadable: BTreeMap::new() }
    }

    /// Loads records from the store.
    pub(crate) async fn load(&mut self, keys: BTreeSet<RecordKey>) -> Result<(), Fault> {
        let keys: Vec<RecordKey> = keys.into_iter().collect();
        let ReadableRecords { records, unreadable } = load_readable(self.store, &keys).await?;
        self.loaded.extend(records);
        self.unreadable.extend(unreadable.into_iter().filter_map(|record| Some((record.key.clone()?, record))));
        Ok(())
    }

    /// The outcome of a command that needs one of these records and cannot have it; `None` if all can be read.
    pub(crate) fn unreadable(&self, keys: &[RecordKey]) -> Option<CommandOutcome> {
        let record = keys.iter().find_map(|key| self.unreadable.get(key))?;
        Some(CommandOutcome::Unreadable(Box::new(record.clone())))
    }

    /// The version of a record that cannot be read.
    pub(crate) fn unreadable_version(&self, key: &RecordKey) -> Option<RecordVersion> {
        self.unreadable.get(key).and_then(|record| record.version)
    }

    /// Whether a record comes from the cache: it was neither loaded for this turn nor written by this session.
    pub(crate) fn is_only_cached(&self, key: &RecordKey) -> bool {
        let is_fresh = [&self.written, self.in_flight, &self.loaded].iter().any(|records| records.contains_key(key));
        !is_fresh && self.cache.get(key).is_some()
    }

    /// Shows what a unit will write to the decisions after it.
    pub(crate) fn write(&mut self, unit: &Unit) {
        for change in &unit.changes {
            match change {
                RecordChange::Put(record) => {
                    let stored = StoredRecord { version: unit.version, record: record.clone() };
                    self.written.insert(record.key(), Some(stored));
                }
                RecordChange::Delete(key) => drop(self.written.insert(key.clone(), None)),
            }
        }
        // If the lock is not released after all, or another run takes it first, the store refuses the unit that takes it.
        for free in &unit.free {
            self.written.insert(RecordKey::Lock(free.lock.clone()), None);
        }
        for take in &unit.take {
            // Only the store knows the fence, and no decision reads it.
            let lock = LockState { name: take.lock.clone(), holder: take.holder, fence: 0, until: None };
            let stored = StoredRecord { version: unit.version, record: Record::Lock(Arc::new(lock)) };
            self.written.insert(RecordKey::Lock(take.lock.clone()), Some(stored));
        }
    }
}

impl RecordSource for TurnView<'_> {
    fn get(&self, key: &RecordKey) -> Option<Option<&StoredRecord>> {
        let fresh = [&self.written, self.in_flight, &self.loaded].into_iter().find_map(|records| records.get(key));
        fresh.or_else(|| self.cache.get(key)).map(Option::as_ref)
    }

    fn is_unreadable(&self, key: &RecordKey) -> bool {
        self.get(key).is_none() && self.unreadable_version(key).is_some()
    }

    fn kept_max(&self) -> Option<u32> {
        self.store.limits().kept
    }

    fn oversize(&self, record: &Record) -> Option<RecordOversize> {
        let limit = self.store.limits().record?;
        let size = self.store.record_size(record);
        (size > limit).then_some(RecordOversize { size, limit })
    }

    fn unit_oversize(&self, changes: &[RecordChange]) -> Option<RecordOversize> {
        let limit = self.store.limits().unit?;
        let size = self.store.unit_size(changes);
        (size > limit).then_some(RecordOversize { size, limit })
    }
}

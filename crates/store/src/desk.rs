//! Where a writer works: its number, its units, and the records it remembers. What it remembers may be out of date;
//! that costs a conflict and never a mistake, because every commit compares what the decision has seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cronhold_core::decision::Change;
use cronhold_core::record::{Key, Kind, LockState, Record, Stored, Version};
use cronhold_core::view::Records;

use crate::hash::Map;
use crate::{Fault, Store, Unit, Writer};

/// A writer's desk.
#[derive(Debug)]
pub struct Desk {
    pub(crate) store: Arc<dyn Store>,
    writer: Writer,
    units: u64,
    pub(crate) memory: Memory,
    /// Records that a decision took to be absent and its commit found: the next decision gets to see them.
    pub(crate) overlooked: BTreeSet<Key>,
    /// What was sent and is not known to be stored yet.
    pub(crate) in_flight: Sheaf,
    /// Whether a unit of the last flight did not come to be.
    pub(crate) is_shaken: bool,
}

/// Records by key; `None` for those that are not there.
pub(crate) type Sheaf = Map<Key, Option<Stored>>;

/// Records that were seen or written lately, in two generations: when the young one is full it becomes the old one, and
/// what nobody wrote since then is forgotten.
#[derive(Debug)]
pub(crate) struct Memory {
    young: Sheaf,
    old: Sheaf,
    most: usize,
}

/// What the decisions of one turn see: what earlier ones of the turn will have written, what the turn before it has
/// sent, what was loaded for it, and what is remembered.
#[derive(Debug)]
pub(crate) struct Sheet<'a> {
    pub(crate) written: Sheaf,
    pub(crate) loaded: Sheaf,
    in_flight: &'a Sheaf,
    memory: &'a Memory,
    /// Records that are there and cannot be read: whoever needs one of them fails, and nobody else.
    unreadable: BTreeMap<Key, Fault>,
}

impl Desk {
    /// A command is decided so many times before it is given up: someone else keeps changing what it depends on.
    pub const ATTEMPTS_MAX: usize = 12;

    /// A desk for a new writer, who remembers about so many records.
    pub async fn new(store: Arc<dyn Store>, remembers: usize) -> Result<Self, Fault> {
        let writer = store.enroll().await?;
        let memory = Memory { young: Sheaf::default(), old: Sheaf::default(), most: remembers.max(2) / 2 };
        Ok(Self {
            store,
            writer,
            units: 0,
            memory,
            overlooked: BTreeSet::new(),
            in_flight: Sheaf::default(),
            is_shaken: false,
        })
    }

    /// The store that it works on.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The writer's number.
    pub fn writer(&self) -> u32 {
        self.writer.0
    }

    /// A record as it was when it was last seen, if it is remembered. It may be out of date.
    pub fn remembered(&self, key: &Key) -> Option<&Record> {
        self.memory.get(key)?.as_ref().map(|stored| &stored.record)
    }

    /// Whether a unit of the flight that landed last did not come to be, so that what was decided on top of it is in doubt.
    pub fn is_shaken(&self) -> bool {
        self.is_shaken
    }

    /// Forgets a record that someone else may have changed.
    pub fn forget(&mut self, key: &Key) {
        self.memory.forget(key);
    }

    pub(crate) fn next_version(&mut self) -> Version {
        self.units += 1;
        Version::new(self.writer.0, self.units)
    }
}

impl Memory {
    fn get(&self, key: &Key) -> Option<&Option<Stored>> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    pub(crate) fn forget(&mut self, key: &Key) {
        self.young.remove(key);
        self.old.remove(key);
    }

    /// Remembers what a unit has written.
    pub(crate) fn learn(&mut self, unit: &Unit) {
        for change in &unit.changes {
            match change {
                Change::Put(record) => {
                    self.remember(record.key(), Some(Stored { version: unit.version, record: record.clone() }));
                }
                Change::Delete(key) => self.remember(key.clone(), None),
            }
        }
    }

    pub(crate) fn remember(&mut self, key: Key, stored: Option<Stored>) {
        let is_over = matches!(&stored, Some(Stored { record: Record::Run(run), .. }) if run.state.is_finished());
        // Nobody asks for finished runs again soon, locks run out by themselves, and nobody hears what others have run.
        if is_over || matches!(key.kind(), Kind::Lock | Kind::Foreign) {
            return self.forget(&key);
        }
        self.old.remove(&key);
        self.young.insert(key, stored);
        if self.young.len() > self.most {
            self.old = std::mem::take(&mut self.young);
        }
    }
}

impl<'a> Sheet<'a> {
    pub(crate) fn new(memory: &'a Memory, in_flight: &'a Sheaf) -> Self {
        Self { written: Sheaf::default(), loaded: Sheaf::default(), in_flight, memory, unreadable: BTreeMap::new() }
    }

    /// Loads records that nobody has looked for yet.
    pub(crate) async fn load(&mut self, store: &dyn Store, keys: BTreeSet<Key>) -> Result<(), Fault> {
        let keys: Vec<Key> = keys.into_iter().collect();
        match store.load(&keys).await {
            Ok(found) => self.loaded.extend(keys.into_iter().zip(found)),
            Err(Fault::Broken(_)) => self.load_singly(store, keys).await?,
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    /// Finds out which of many records it is that cannot be read.
    async fn load_singly(&mut self, store: &dyn Store, keys: Vec<Key>) -> Result<(), Fault> {
        for key in keys {
            match store.load(std::slice::from_ref(&key)).await {
                Ok(found) => drop(self.loaded.insert(key, found.into_iter().next().flatten())),
                Err(fault @ Fault::Broken(_)) => drop(self.unreadable.insert(key, fault)),
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    /// Why one of the records cannot be had, if one cannot.
    pub(crate) fn fault_of(&self, keys: &[Key]) -> Option<&Fault> {
        keys.iter().find_map(|key| self.unreadable.get(key))
    }

    /// Whether a record is only remembered: it was neither loaded nor written just now.
    pub(crate) fn is_remembered(&self, key: &Key) -> bool {
        let is_fresh = [&self.written, self.in_flight, &self.loaded].iter().any(|sheaf| sheaf.contains_key(key));
        !is_fresh && self.memory.get(key).is_some()
    }

    pub(crate) fn write(&mut self, unit: &Unit) {
        for change in &unit.changes {
            match change {
                Change::Put(record) => {
                    let stored = Stored { version: unit.version, record: record.clone() };
                    self.written.insert(record.key(), Some(stored));
                }
                Change::Delete(key) => drop(self.written.insert(key.clone(), None)),
            }
        }
        // If a lock is not freed after all, or somebody else is faster, taking it is refused and decided again.
        for free in &unit.free {
            self.written.insert(Key::Lock(free.lock.clone()), None);
        }
        for take in &unit.take {
            // Its fence is known only to the store, and no decision asks for it.
            let lock = LockState { name: take.lock.clone(), holder: take.holder, fence: 0, until: None };
            let stored = Stored { version: unit.version, record: Record::Lock(Arc::new(lock)) };
            self.written.insert(Key::Lock(take.lock.clone()), Some(stored));
        }
    }
}

impl Records for Sheet<'_> {
    fn get(&self, key: &Key) -> Option<Option<&Stored>> {
        let just_now = [&self.written, self.in_flight, &self.loaded].into_iter().find_map(|sheaf| sheaf.get(key));
        just_now.or_else(|| self.memory.get(key)).map(Option::as_ref)
    }
}

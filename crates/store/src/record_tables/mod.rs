//! Records in ordered tables with the indexes that lists need. The reference store keeps its records in them, and a store
//! whose servers cannot list keeps a mirror of its records in them.

mod indexes;
mod listing;

use std::collections::BTreeMap;

use cronhold_core::RunId;
use cronhold_core::record::{Record, RecordKey, RecordKind, StoredRecord};

use self::indexes::TableIndexes;
use crate::{Page, UnreadableRecord};

/// Tables of records of all kinds.
#[derive(Debug, Clone, Default)]
pub struct RecordTables {
    /// A table for each kind. Those of locks and of foreign runs stay empty.
    tables: [BTreeMap<RecordKey, RecordEntry>; RecordKind::Triggers as usize + 1],
    indexes: TableIndexes,
}

/// A record that exists.
#[derive(Debug, Clone)]
enum RecordEntry {
    Readable(StoredRecord),
    Unreadable {
        record: UnreadableRecord,
        /// What is known of the record, so that the lists to which it belongs name it.
        listed_as: Option<Record>,
    },
}

impl RecordEntry {
    /// Adds the entry to a page.
    fn add_to(&self, page: &mut Page) {
        match self {
            Self::Readable(stored) => page.push(stored.clone()),
            Self::Unreadable { record, .. } => page.push_unreadable(record.clone()),
        }
    }

    /// The record by which the entry is listed.
    fn listed_as(&self) -> Option<&Record> {
        match self {
            Self::Readable(stored) => Some(&stored.record),
            Self::Unreadable { listed_as, .. } => listed_as.as_ref(),
        }
    }
}

impl RecordTables {
    /// A record; `None` if it does not exist or cannot be read.
    pub fn get(&self, key: &RecordKey) -> Option<&StoredRecord> {
        match self.table(key.kind()).get(key) {
            Some(RecordEntry::Readable(stored)) => Some(stored),
            _ => None,
        }
    }

    /// A record that cannot be read.
    pub fn get_unreadable(&self, key: &RecordKey) -> Option<&UnreadableRecord> {
        match self.table(key.kind()).get(key) {
            Some(RecordEntry::Unreadable { record, .. }) => Some(record),
            _ => None,
        }
    }

    /// Whether a record exists, whether it can be read or not.
    pub fn contains(&self, key: &RecordKey) -> bool {
        self.table(key.kind()).contains_key(key)
    }

    /// Writes a record, or deletes it.
    pub fn put(&mut self, key: RecordKey, stored: Option<StoredRecord>) {
        self.replace(key, stored.map(RecordEntry::Readable));
    }

    /// Notes that a record exists and cannot be read. `listed_as` is what is known of it.
    pub fn put_unreadable(&mut self, key: RecordKey, record: UnreadableRecord, listed_as: Option<Record>) {
        self.replace(key, Some(RecordEntry::Unreadable { record, listed_as }));
    }

    /// The keys of all records.
    pub fn keys(&self) -> impl Iterator<Item = &RecordKey> {
        self.tables.iter().flat_map(BTreeMap::keys)
    }

    /// Whether a run exists and has not finished.
    pub fn is_unfinished(&self, run: RunId) -> bool {
        self.indexes.unfinished.contains(&run)
    }

    /// Replaces an entry and updates the indexes.
    fn replace(&mut self, key: RecordKey, new: Option<RecordEntry>) {
        let table = &mut self.tables[key.kind() as usize];
        let old = table.get(&key).and_then(RecordEntry::listed_as);
        self.indexes.replace(&key, old, new.as_ref().and_then(RecordEntry::listed_as));
        match new {
            Some(entry) => drop(table.insert(key, entry)),
            None => drop(table.remove(&key)),
        }
    }

    fn table(&self, kind: RecordKind) -> &BTreeMap<RecordKey, RecordEntry> {
        &self.tables[kind as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cronhold_core::JobId;
    use cronhold_core::record::{JobState, RecordVersion, TriggerSet};

    use super::*;
    use crate::Query;

    #[test]
    fn unreadable_records_are_listed_in_their_place() {
        let mut tables = RecordTables::default();
        let job = |name: &str| JobId::parse(name).expect("an id");
        let unreadable =
            |key: &RecordKey| UnreadableRecord { key: Some(key.clone()), version: None, reason: "damaged".to_owned() };
        for name in ["a", "b", "c"] {
            let record = Record::JobState(Arc::new(JobState::new(job(name))));
            tables.put(record.key(), Some(StoredRecord { version: RecordVersion::new(1, 1), record }));
        }
        let b = RecordKey::JobState(job("b"));
        tables.put_unreadable(b.clone(), unreadable(&b), None);
        assert!(tables.get(&b).is_none() && tables.contains(&b) && tables.get_unreadable(&b).is_some());
        let page = tables.page(&Query::JobStates { after: None }, 2);
        assert_eq!((page.records.len(), page.unreadable.len(), page.next(2)), (1, 1, Some(b.clone())));
        let page = tables.page(&Query::JobStates { after: Some(job("b")) }, 2);
        assert_eq!((page.records.len(), page.unreadable.len()), (1, 0));
        tables.put(b.clone(), None);
        assert!(!tables.contains(&b));

        // A record that is listed by what it refers to needs to be known in part.
        let triggers = RecordKey::Triggers(job("t"));
        let known = Record::Triggers(Arc::new(TriggerSet {
            due: Some(cronhold_schedule::Instant::EPOCH),
            ..TriggerSet::new(job("t"))
        }));
        tables.put_unreadable(triggers.clone(), unreadable(&triggers), Some(known));
        let page = tables.page(&Query::PendingTriggers { after: None }, 2);
        assert_eq!((page.records.len(), page.unreadable.len()), (0, 1));
    }
}

//! What the mirror has: the records by key, and the znodes of records that were deleted.

use std::collections::{BTreeMap, BTreeSet};

use cronhold_core::decision::RecordChange;
use cronhold_core::record::{NodeRecord, Record, RecordKey, StoredRecord};
use cronhold_schedule::ZoneRegistry;
use cronhold_store::{Hint, RecordTables, SeedlessMap, UnreadableRecord};
use cronhold_store_records::decode_listed_run;

use super::NamedHint;
use crate::castle::ScheduleIndex;
use crate::paths::{RecordPlace, ZnodePaths};
use crate::record_text;
use crate::wire::{Znode, ZnodeStat};
use crate::writer_registry::WriterRegistry;

/// The records of a store.
#[derive(Debug, Default)]
pub(super) struct MirrorState {
    tables: RecordTables,
    /// When jobs are next.
    schedule: ScheduleIndex,
    /// The keys of identities by their paths.
    identities: SeedlessMap<String, RecordKey>,
    /// Empty znodes by their paths.
    emptied: BTreeMap<String, ZnodeStat>,
}

impl MirrorState {
    pub(super) fn tables(&self) -> &RecordTables {
        &self.tables
    }

    pub(super) fn schedule(&mut self) -> &mut ScheduleIndex {
        &mut self.schedule
    }

    /// The empty znodes that can be deleted. That of the pause stays, because every claim checks it.
    pub(super) fn emptied(&self, paths: &ZnodePaths) -> Vec<(String, ZnodeStat)> {
        let pause = paths.record(&RecordKey::Pause);
        let emptied = self.emptied.iter().filter(|(path, _)| Some(*path) != pause.as_ref());
        emptied.map(|(path, stat)| (path.clone(), *stat)).collect()
    }

    /// The paths of all records, except of those in `seen`.
    pub(super) fn paths_besides(&self, paths: &ZnodePaths, seen: &BTreeSet<String>) -> Vec<String> {
        let known = self.tables.keys().filter_map(|key| paths.record(key)).chain(self.emptied.keys().cloned());
        known.filter(|path| !seen.contains(path)).collect()
    }

    /// Replaces what is known of a znode. Returns a hint if the record has changed.
    pub(super) fn apply(
        &mut self,
        paths: &ZnodePaths,
        zones: &ZoneRegistry,
        writers: &WriterRegistry,
        path: &str,
        znode: Option<&Znode>,
    ) -> Option<NamedHint> {
        let place = paths.place(path)?;
        match znode.filter(|znode| znode.data.is_empty()) {
            Some(znode) => drop(self.emptied.insert(path.to_owned(), znode.stat)),
            None => drop(self.emptied.remove(path)),
        }
        let data = znode.map(|znode| znode.data.as_slice()).unwrap_or_default();
        match record_text::decode(&place, path, data, zones) {
            // The data of an identity was copied to another znode.
            Ok(Some(stored)) if paths.record(&stored.record.key()).as_deref() != Some(path) => None,
            Ok(Some(stored)) => self.put(path, &place, stored, writers),
            Ok(None) => self.delete(path, place, writers),
            Err(unreadable) => self.put_unreadable(path, unreadable, data),
        }
    }

    fn put(
        &mut self,
        path: &str,
        place: &RecordPlace,
        stored: StoredRecord,
        writers: &WriterRegistry,
    ) -> Option<NamedHint> {
        let key = stored.record.key();
        if *place == RecordPlace::Identity {
            self.identities.insert(path.to_owned(), key.clone());
        }
        let old = self.tables.get(&key);
        let is_known =
            old.is_some_and(|old| old.version == stored.version || is_same_but_later(&old.record, &stored.record));
        let hint = (!is_known)
            .then(|| (writers.handle_of(stored.version), Hint::of(&RecordChange::Put(stored.record.clone()))));
        self.schedule.put(&stored.record, false);
        self.tables.put(key, Some(stored));
        hint
    }

    fn delete(&mut self, path: &str, place: RecordPlace, writers: &WriterRegistry) -> Option<NamedHint> {
        let key = match place {
            RecordPlace::Key(key) => key,
            RecordPlace::Identity => self.identities.remove(path)?,
        };
        let by = writers.take_deletion(path);
        if !self.tables.contains(&key) {
            return None;
        }
        self.schedule.delete(&key, false);
        self.tables.put(key.clone(), None);
        Some((by, Hint::of(&RecordChange::Delete(key))))
    }

    fn put_unreadable(&mut self, path: &str, record: UnreadableRecord, data: &[u8]) -> Option<NamedHint> {
        let key = record.key.clone().or_else(|| self.identities.get(path).cloned())?;
        let record = UnreadableRecord { key: Some(key.clone()), ..record };
        if self.tables.get_unreadable(&key) == Some(&record) {
            return None;
        }
        let head = match &key {
            RecordKey::Run(run) | RecordKey::SkipSpan(run) => decode_listed_run(*run, data),
            _ => None,
        };
        let known = head.map(|run| Record::Run(run.into()));
        let listed_as = known.or_else(|| self.tables.get(&key).map(|stored| stored.record.clone()));
        self.tables.put_unreadable(key.clone(), record, listed_as);
        Some((None, Hint::new(key)))
    }
}

/// Whether only the time of a heartbeat has changed, which is not published.
fn is_same_but_later(old: &Record, new: &Record) -> bool {
    let (Record::Node(old), Record::Node(new)) = (old, new) else { return false };
    let NodeRecord { beat, gone, skew, .. } = **old;
    **old == NodeRecord { beat, gone, skew, ..(**new).clone() }
}

#[cfg(test)]
mod tests {
    use cronhold_core::record::Identity;
    use cronhold_core::{Args, JobId};
    use cronhold_schedule::Instant;

    use super::*;

    fn apply(state: &mut MirrorState, path: &str, data: &[u8]) {
        let (paths, zones, writers) = (ZnodePaths::new("/r"), ZoneRegistry::bundled(), WriterRegistry::default());
        let stat = ZnodeStat { version: 1, modified: Instant::EPOCH, zxid: 1 };
        state.apply(&paths, &zones, &writers, path, Some(&Znode { data: data.to_vec(), stat }));
    }

    #[test]
    fn znode_of_the_pause_is_never_deleted() {
        let (paths, mut state) = (ZnodePaths::new("/r"), MirrorState::default());
        let state_path = paths.record(&RecordKey::JobState(JobId::parse("a").expect("an id"))).expect("a znode");
        for path in [&paths.record(&RecordKey::Pause).expect("a znode"), &state_path] {
            apply(&mut state, path, b"");
        }
        let emptied: Vec<String> = state.emptied(&paths).into_iter().map(|(path, _)| path).collect();
        assert_eq!(emptied, [state_path]);
    }

    #[test]
    fn identity_that_becomes_unreadable_is_not_listed_as_it_was() {
        let (paths, mut state) = (ZnodePaths::new("/r"), MirrorState::default());
        let identity = Identity::new(JobId::parse("a").expect("an id"), Args::new());
        let record = Record::Identity(std::sync::Arc::new(identity));
        let path = paths.record(&record.key()).expect("a znode");
        let data = record_text::encode(cronhold_core::record::RecordVersion::new(1, 1), &record);
        apply(&mut state, &path, &data);
        apply(&mut state, &format!("{path}0"), &data);
        assert!(state.tables.get_unreadable(&record.key()).is_none());
        apply(&mut state, &path, b"garbage");
        assert!(state.tables.get_unreadable(&record.key()).is_some());
    }
}

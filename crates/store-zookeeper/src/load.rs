//! Loads records: a sync and one read of all their znodes, so that all are seen at one moment, and nothing that was
//! written before is missed.

use std::sync::Arc;

use cronhold_core::record::{LockName, RecordKey, StoredRecord};
use cronhold_schedule::ZoneRegistry;
use cronhold_store::{Fault, WalkPage, WalkPlace};

use crate::ensemble::Ensemble;
use crate::known_znodes::{KnownZnode, KnownZnodes};
use crate::paths::{RecordPlace, ZnodePaths};
use crate::wire::{Znode, ZnodeStat};
use crate::{lock_text, record_text};

/// Records of one read. A longer list is not one snapshot.
const READS_MAX: usize = 4_000;

/// Reads records and locks.
#[derive(Debug)]
pub(crate) struct RecordLoader {
    ensemble: Arc<Ensemble>,
    known: Arc<KnownZnodes>,
    zones: Arc<ZoneRegistry>,
}

impl RecordLoader {
    pub(crate) fn new(ensemble: Arc<Ensemble>, known: Arc<KnownZnodes>, zones: Arc<ZoneRegistry>) -> Self {
        Self { ensemble, known, zones }
    }

    /// Records in the order of the keys; `None` for those that do not exist, and for locks that are free.
    pub(crate) async fn load(&self, keys: &[RecordKey]) -> Result<Vec<Option<StoredRecord>>, Fault> {
        let mut records = Vec::with_capacity(keys.len());
        for keys in keys.chunks(READS_MAX) {
            self.load_part(keys, &mut records).await?;
        }
        Ok(records)
    }

    async fn load_part(&self, keys: &[RecordKey], records: &mut Vec<Option<StoredRecord>>) -> Result<(), Fault> {
        let path = |key: &RecordKey| match key {
            RecordKey::Lock(name) => Some(self.ensemble.paths().lock(name)),
            key => self.ensemble.paths().record(key),
        };
        let paths: Vec<Option<String>> = keys.iter().map(path).collect();
        let existing: Vec<String> = paths.iter().flatten().cloned().collect();
        let session = self.ensemble.session().await?;
        let found = session.read(&existing, true).await?;
        let locks = keys.iter().filter(|key| path(key).is_some()).zip(&found);
        let locks = locks.filter(|(key, _)| matches!(key, RecordKey::Lock(_)));
        let stats: Vec<ZnodeStat> = locks.filter_map(|(_, znode)| Some(znode.as_ref()?.stat)).collect();
        let now = if stats.is_empty() { None } else { Some(self.ensemble.time_after(&stats).await?) };
        let mut found = found.into_iter();
        for (key, path) in keys.iter().zip(paths) {
            // A foreign run never exists.
            let Some(path) = path else {
                records.push(None);
                continue;
            };
            let znode = found.next().flatten();
            records.push(match (key, now) {
                (RecordKey::Lock(name), Some(now)) => match znode {
                    Some(znode) => {
                        let end = |ttl| self.ensemble.clock().end_of_lock(&znode.stat, ttl);
                        let entry = lock_text::decode(name, &path, &znode.data, end).map_err(record_text::fault)?;
                        entry.and_then(|entry| entry.to_record(name, now))
                    }
                    None => None,
                },
                (RecordKey::Lock(_), None) => None,
                _ => self.record(key, &path, znode)?,
            });
        }
        Ok(())
    }

    /// Locks that are held, by name, after the one of a place. Marks are left out.
    pub(crate) async fn walk_locks(&self, from: Option<&WalkPlace>, limit: usize) -> Result<WalkPage, Fault> {
        let after = from.and_then(|place| LockName::parse(std::str::from_utf8(&place.0).ok()?).ok());
        let session = self.ensemble.session().await?;
        session.sync().await?;
        let names = session.children(&[self.ensemble.paths().locks()]).await?;
        let names = names.iter().flatten().filter_map(|name| ZnodePaths::lock_name(name));
        let mut names: Vec<LockName> = names.filter(|name| !name.is_mark() && after.as_ref() < Some(name)).collect();
        names.sort_unstable();
        let limit = limit.max(1);
        let is_last = names.len() <= limit;
        names.truncate(limit);
        let next = names.last().filter(|_| !is_last).map(|name| WalkPlace(name.as_str().as_bytes().to_vec()));
        let keys: Vec<RecordKey> = names.into_iter().map(RecordKey::Lock).collect();
        let mut page = WalkPage { next, ..WalkPage::default() };
        match self.load(&keys).await {
            Ok(records) => page.records.extend(records.into_iter().flatten()),
            Err(Fault::Unreadable(_)) => self.load_singly(&keys, &mut page).await?,
            Err(fault) => return Err(fault),
        }
        Ok(page)
    }

    /// Loads each record by itself, because one of them cannot be read.
    async fn load_singly(&self, keys: &[RecordKey], page: &mut WalkPage) -> Result<(), Fault> {
        for key in keys {
            match self.load(std::slice::from_ref(key)).await {
                Ok(found) => page.records.extend(found.into_iter().flatten()),
                Err(Fault::Unreadable(unreadable)) => page.unreadable.push(*unreadable),
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    fn record(&self, key: &RecordKey, path: &str, znode: Option<Znode>) -> Result<Option<StoredRecord>, Fault> {
        let known = znode.as_ref().map_or(KnownZnode::ABSENT, |znode| KnownZnode {
            data_version: Some(znode.stat.version),
            version: record_text::version(key, &znode.data),
        });
        self.known.extend([(key.clone(), known)]);
        let Some(znode) = znode else { return Ok(None) };
        let place = match key {
            RecordKey::Identity(..) => RecordPlace::Identity,
            key => RecordPlace::Key(key.clone()),
        };
        record_text::decode(&place, path, &znode.data, &self.zones).map_err(record_text::fault)
    }
}

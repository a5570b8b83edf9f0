//! What this process knows about the znodes of records: the data version, and the version of the record in it. It may be
//! out of date, which costs a refused transaction and never a wrong result, because transactions check data versions.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use cronhold_core::record::{RecordKey, RecordVersion};
use cronhold_store::{SeedlessMap, lock_mutex};
use tokio::time::Instant;

/// Znodes in one generation; there are two.
const GENERATION_MAX: usize = 50_000;

/// The time after which a generation is replaced. What is known is at most three times as old, and so younger than an
/// emptied znode that is deleted. It is forgotten with the session, because the local clock can stand still.
const GENERATION_AGE: Duration = Duration::from_secs(600);

/// The znode of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownZnode {
    /// `None` if the znode does not exist.
    pub(crate) data_version: Option<i32>,
    /// `None` if the record does not exist; the znode may exist and be empty.
    pub(crate) version: Option<RecordVersion>,
}

impl KnownZnode {
    pub(crate) const ABSENT: Self = Self { data_version: None, version: None };

    fn is_emptied(&self) -> bool {
        self.data_version.is_some() && self.version.is_none()
    }
}

/// Znodes that were read or written lately.
#[derive(Debug, Default)]
pub(crate) struct KnownZnodes(Mutex<ZnodeGenerations>);

#[derive(Debug, Default)]
struct ZnodeGenerations {
    young: SeedlessMap<RecordKey, KnownZnode>,
    old: SeedlessMap<RecordKey, KnownZnode>,
    since: Option<Instant>,
}

impl KnownZnodes {
    pub(crate) fn get(&self, key: &RecordKey) -> Option<KnownZnode> {
        let state = self.current();
        state.young.get(key).or_else(|| state.old.get(key)).copied()
    }

    /// Takes note of znodes. Emptied ones are read each time, because they are deleted and then count from 0 again; the znode
    /// of the pause is never deleted.
    pub(crate) fn extend(&self, znodes: impl IntoIterator<Item = (RecordKey, KnownZnode)>) {
        let mut state = self.current();
        for (key, znode) in znodes {
            state.old.remove(&key);
            if znode.is_emptied() && key != RecordKey::Pause {
                state.young.remove(&key);
            } else {
                state.young.insert(key, znode);
            }
        }
    }

    /// Forgets everything, because a new session begins.
    pub(crate) fn clear(&self) {
        *self.lock() = ZnodeGenerations::default();
    }

    /// Forgets znodes, which were found to be out of date.
    pub(crate) fn forget<'k>(&self, keys: impl IntoIterator<Item = &'k RecordKey>) {
        let mut state = self.lock();
        for key in keys {
            state.young.remove(key);
            state.old.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ZnodeGenerations> {
        lock_mutex(&self.0)
    }

    /// The generations, without those that are too old.
    fn current(&self) -> MutexGuard<'_, ZnodeGenerations> {
        let mut state = self.lock();
        let now = Instant::now();
        let age = now.duration_since(*state.since.get_or_insert(now));
        if state.young.len() >= GENERATION_MAX || age >= GENERATION_AGE {
            state.old = std::mem::take(&mut state.young);
            state.since = Some(now);
        }
        if age >= 2 * GENERATION_AGE {
            state.old.clear();
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use cronhold_core::JobId;

    use super::*;

    #[test]
    fn emptied_znodes_are_not_known_except_that_of_the_pause() {
        let known = KnownZnodes::default();
        let job = RecordKey::JobState(JobId::parse("a").expect("an id"));
        let written = KnownZnode { data_version: Some(3), version: Some(RecordVersion::new(1, 1)) };
        let emptied = KnownZnode { data_version: Some(4), version: None };
        known.extend([(job.clone(), written), (RecordKey::Pause, written)]);
        assert_eq!(known.get(&job), Some(written));
        known.extend([(job.clone(), emptied), (RecordKey::Pause, emptied)]);
        assert_eq!((known.get(&job), known.get(&RecordKey::Pause)), (None, Some(emptied)));
        known.extend([(job.clone(), KnownZnode::ABSENT)]);
        assert_eq!(known.get(&job), Some(KnownZnode::ABSENT));
        known.clear();
        assert_eq!((known.get(&job), known.get(&RecordKey::Pause)), (None, None));
    }
}

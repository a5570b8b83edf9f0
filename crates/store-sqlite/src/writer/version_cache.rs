//! Caches the versions of jobs and of the global pause, which nearly every unit compares and few change.
//!
//! Invariant: a cached version is the one that the open transaction would read. So the cache is cleared when a
//! transaction is rolled back, and when another connection has written to the file, for example an `sqlite3` shell.

use cronhold_core::record::{RecordKey, RecordVersion};
use cronhold_store::SeedlessMap;

/// When the cache reaches this size, it is cleared.
const CACHED_MAX: usize = 128 * 1024;

/// Versions of records; `None` for a record that does not exist.
#[derive(Debug, Default)]
pub(super) struct VersionCache {
    versions: SeedlessMap<RecordKey, Option<RecordVersion>>,
    /// `PRAGMA data_version`, which changes when another connection has written.
    data_version: i64,
}

impl VersionCache {
    /// Starts a transaction; clears the cache if another connection has written since the last one. Returns whether it
    /// has.
    pub(super) fn begin(&mut self, data_version: i64) -> bool {
        let has_changed = self.data_version != data_version;
        if has_changed {
            self.data_version = data_version;
            self.versions.clear();
        }
        has_changed
    }

    pub(super) fn clear(&mut self) {
        self.versions.clear();
    }

    /// The version of a record; the outer `None` if it is not cached.
    pub(super) fn get(&self, key: &RecordKey) -> Option<Option<RecordVersion>> {
        self.versions.get(key).copied()
    }

    /// Caches a version that was read.
    pub(super) fn insert(&mut self, key: &RecordKey, version: Option<RecordVersion>) {
        if !is_cached(key) {
            return;
        }
        if self.versions.len() >= CACHED_MAX {
            self.versions.clear();
        }
        self.versions.insert(key.clone(), version);
    }

    /// Drops a record that is being written.
    pub(super) fn remove(&mut self, key: &RecordKey) {
        if is_cached(key) {
            self.versions.remove(key);
        }
    }
}

const fn is_cached(key: &RecordKey) -> bool {
    matches!(key, RecordKey::Job(_) | RecordKey::Pause)
}

#[cfg(test)]
mod tests {
    use cronhold_core::JobId;

    use super::*;

    #[test]
    fn writes_and_foreign_commits_invalidate_versions() {
        let job = RecordKey::Job(JobId::parse("a").expect("an id"));
        let state = RecordKey::JobState(JobId::parse("a").expect("an id"));
        let version = Some(RecordVersion::new(1, 2));
        let mut cache = VersionCache::default();
        cache.begin(1);
        cache.insert(&job, version);
        cache.insert(&state, version);
        cache.insert(&RecordKey::Pause, None);
        assert_eq!([&job, &state, &RecordKey::Pause].map(|key| cache.get(key)), [Some(version), None, Some(None)]);
        cache.begin(1);
        cache.remove(&RecordKey::Pause);
        assert_eq!([&job, &RecordKey::Pause].map(|key| cache.get(key)), [Some(version), None]);
        cache.begin(2);
        assert_eq!(cache.get(&job), None, "another connection has written");
    }
}

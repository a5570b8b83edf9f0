//! Versions that the writer remembers: those of jobs and of the pause of everything, which nearly every unit compares
//! and hardly any changes.
//!
//! Invariant: a version that is remembered is the one that the open transaction would read. So all are forgotten when a
//! transaction is undone and when someone else has written to the file, such as a person with a shell.

use std::collections::BTreeMap;

use cronhold_core::record::{Key, Version};

/// So many versions are remembered. When there are more, all are forgotten and learnt again.
const REMEMBERED_MAX: usize = 16 * 1024;

/// Versions of records; `None` is one that is not there.
#[derive(Debug, Default)]
pub(super) struct Memory {
    versions: BTreeMap<Key, Option<Version>>,
    /// What SQLite counts up when another connection has written.
    others: i64,
}

impl Memory {
    /// A transaction begins.
    pub(super) fn begin(&mut self, others: i64) {
        if self.others != others {
            self.others = others;
            self.versions.clear();
        }
    }

    pub(super) fn forget_all(&mut self) {
        self.versions.clear();
    }

    /// The version of a record, if it is remembered.
    pub(super) fn get(&self, key: &Key) -> Option<Option<Version>> {
        self.versions.get(key).copied()
    }

    /// Remembers a version that was read.
    pub(super) fn learn(&mut self, key: &Key, version: Option<Version>) {
        if !is_remembered(key) {
            return;
        }
        if self.versions.len() >= REMEMBERED_MAX {
            self.versions.clear();
        }
        self.versions.insert(key.clone(), version);
    }

    /// A record is written.
    pub(super) fn forget(&mut self, key: &Key) {
        if is_remembered(key) {
            self.versions.remove(key);
        }
    }
}

const fn is_remembered(key: &Key) -> bool {
    matches!(key, Key::Job(_) | Key::Pause)
}

#[cfg(test)]
mod tests {
    use cronhold_core::JobId;

    use super::*;

    #[test]
    fn forgets_what_may_have_changed() {
        let job = Key::Job(JobId::parse("a").expect("an id"));
        let state = Key::JobState(JobId::parse("a").expect("an id"));
        let version = Some(Version::new(1, 2));
        let mut memory = Memory::default();
        memory.begin(1);
        memory.learn(&job, version);
        memory.learn(&state, version);
        memory.learn(&Key::Pause, None);
        assert_eq!([&job, &state, &Key::Pause].map(|key| memory.get(key)), [Some(version), None, Some(None)]);
        memory.begin(1);
        memory.forget(&Key::Pause);
        assert_eq!([&job, &Key::Pause].map(|key| memory.get(key)), [Some(version), None]);
        memory.begin(2);
        assert_eq!(memory.get(&job), None, "someone else has written");
    }
}

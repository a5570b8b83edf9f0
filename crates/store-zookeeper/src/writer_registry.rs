//! Which handle of this process has made a change, so that no handle gets hints of its own changes. A record tells its
//! writer by its version; who has deleted a record is remembered until the watch reports it.

use std::sync::{Mutex, MutexGuard};

use cronhold_core::record::RecordVersion;
use cronhold_store::{HandleId, SeedlessMap, lock_mutex};

/// Deletions that are remembered. If a watch does not report them, a handle gets hints of its own deletions.
const DELETIONS_MAX: usize = 20_000;

/// The writers and the deletions of this process.
#[derive(Debug, Default)]
pub(crate) struct WriterRegistry(Mutex<RegistryState>);

#[derive(Debug, Default)]
struct RegistryState {
    /// Handles by the number of their writers, as versions have it.
    writers: SeedlessMap<u32, HandleId>,
    /// Handles by the paths that they delete or empty.
    deletions: SeedlessMap<String, HandleId>,
}

impl WriterRegistry {
    /// A handle has enrolled a writer.
    pub(crate) fn enroll(&self, writer: u32, handle: HandleId) {
        self.lock().writers.insert(RecordVersion::new(writer, 0).writer(), handle);
    }

    /// The handle that has written a record; `None` for another process.
    pub(crate) fn handle_of(&self, version: RecordVersion) -> Option<HandleId> {
        self.lock().writers.get(&version.writer()).copied()
    }

    /// A handle is about to delete these paths.
    pub(crate) fn expect_deletions<'p>(&self, handle: HandleId, paths: impl Iterator<Item = &'p String>) {
        let mut paths = paths.peekable();
        if paths.peek().is_none() {
            return;
        }
        let mut state = self.lock();
        if state.deletions.len() >= DELETIONS_MAX {
            state.deletions.clear();
        }
        state.deletions.extend(paths.map(|path| (path.clone(), handle)));
    }

    /// The handle that has deleted a path; `None` for another process.
    pub(crate) fn take_deletion(&self, path: &str) -> Option<HandleId> {
        self.lock().deletions.remove(path)
    }

    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        lock_mutex(&self.0)
    }
}

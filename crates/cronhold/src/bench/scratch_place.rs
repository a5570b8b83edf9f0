//! Where `cronhold bench` works: a directory, and stores in it or on a server. Nothing of it is left at the end.

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};

use cronhold_wiring::{ScratchStores, StoreError, StoreUrl};

use super::scratch_directory::ScratchDirectory;

/// A directory and stores that are removed when this is dropped. It must not be dropped inside an executor.
#[derive(Debug)]
pub(super) struct ScratchPlace {
    directory: ScratchDirectory,
    stores: ScratchStores,
    has_deleted: Cell<bool>,
}

impl ScratchPlace {
    pub(super) fn new(directory: ScratchDirectory, stores: ScratchStores) -> Self {
        Self { directory, stores, has_deleted: Cell::new(false) }
    }

    /// The directory.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The location of the stores.
    pub(super) fn stores(&self) -> &ScratchStores {
        &self.stores
    }

    /// Creates the data directory of a node.
    pub(super) fn create_home(&self, name: &str) -> io::Result<PathBuf> {
        self.directory.subdirectory(name)
    }

    /// The URL of the store of that node.
    pub(super) fn store_url(&self, name: &str) -> Result<StoreUrl, StoreError> {
        self.stores.store(name)
    }

    /// Deletes the stores. All of them must be closed.
    pub(super) fn delete_stores(&self) -> Result<(), StoreError> {
        self.has_deleted.set(true);
        self.stores.delete()
    }
}

impl Drop for ScratchPlace {
    fn drop(&mut self) {
        // After a panic, nothing can be reported any more.
        if !self.has_deleted.get() {
            let _ = self.stores.delete();
        }
    }
}

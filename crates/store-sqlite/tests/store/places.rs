//! Directories for test files, removed at the end of each test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug)]
pub(crate) struct Place(PathBuf);

impl Place {
    /// A new, empty directory.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sqlite-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("a directory can be created");
        Self(folder)
    }

    /// The path of a file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The path of the database in it.
    pub(crate) fn database(&self) -> PathBuf {
        self.file("cronhold.db")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A leftover directory does no harm: no other test uses its name.
        let _ = fs::remove_dir_all(&self.0);
    }
}

//! Folders of test servers.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A folder that is removed when it is dropped.
#[derive(Debug)]
pub struct TestFolder(PathBuf);

impl TestFolder {
    /// Creates an empty folder. `purpose` is a part of its name, such as `redis`.
    pub fn new(purpose: &str) -> Self {
        let name = format!("cronhold-{purpose}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        // An earlier process with the same id may have been killed before it could clean up.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a new folder in the folder for everybody");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Removes its content.
    pub fn clear(&self) {
        std::fs::remove_dir_all(&self.0).expect("the folder is ours");
        std::fs::create_dir_all(&self.0).expect("the folder was there a moment ago");
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

//! Waits for conditions of real processes, with a time limit.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Time limit of every wait in tests.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(5);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Calls `look` until it returns a value. Panics after the time limit.
#[expect(clippy::disallowed_methods, reason = "tests wait for real processes, within bounds of real time")]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain for this: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// A free port. Another process may take it before it is used, so callers must retry.
pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
    listener.local_addr().expect("a listener has an address").port()
}

/// A directory that is removed when it is dropped.
#[derive(Debug)]
pub(super) struct TestFolder(PathBuf);

impl TestFolder {
    pub(super) fn new() -> Self {
        let name = format!("cronhold-redis-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        // An earlier process with the same id may have been killed before it could clean up.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a new folder in the folder for everybody");
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Removes its content.
    pub(super) fn empty(&self) {
        std::fs::remove_dir_all(&self.0).expect("the folder is ours");
        std::fs::create_dir_all(&self.0).expect("the folder was there a moment ago");
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

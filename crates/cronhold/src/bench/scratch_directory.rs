//! The directory in which a benchmark works. It is removed at the end, and its name says what it is, in case the process
//! was killed before that.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use cronhold_cli::CliError;
use cronhold_engine::EntropySource;

use crate::chance::SystemEntropy;

/// The beginning of the name. The process id and random digits follow.
const PREFIX: &str = "cronhold-bench-";
/// The file that is locked as long as the directory is in use.
const LOCK: &str = "lock";
/// Mode of the directory: only for the user.
const MODE: u32 = 0o700;
/// Mode of the lock: only for the user.
const LOCK_MODE: u32 = 0o600;
/// Attempts to remove the directory, and the pause between them. A process of the keeper may be about to write its last
/// file.
const REMOVALS_MAX: usize = 50;
const REMOVAL_PAUSE: Duration = Duration::from_millis(20);

/// A new directory that is removed when this is dropped.
#[derive(Debug)]
pub(super) struct ScratchDirectory {
    path: PathBuf,
    _lock: File,
}

impl ScratchDirectory {
    /// Creates a directory in `parent`, or, if that does not exist, in the nearest directory above it that does. First
    /// removes directories there that killed benchmarks have left behind.
    pub(super) fn create(parent: &Path) -> Result<Self, CliError> {
        let parent = nearest_existing(parent);
        Self::create_in(parent).map_err(|error| {
            let message = format!("cannot create a scratch directory in {}: {error}", parent.display());
            CliError::refused(message, "name a writable directory with --data; its disk is measured")
        })
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        // The keeper needs an absolute path.
        let parent = parent.canonicalize()?;
        remove_leftovers(&parent);
        let path = parent.join(format!("{PREFIX}{}-{:08x}", std::process::id(), SystemEntropy.bits() as u32));
        DirBuilder::new().mode(MODE).create(&path)?;
        let made = lock(&path.join(LOCK), true);
        match made {
            Ok(file) => Ok(Self { path, _lock: file }),
            Err(error) => {
                let _ = fs::remove_dir_all(&path);
                Err(error)
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a directory in it.
    pub(super) fn subdirectory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        DirBuilder::new().mode(MODE).create(&path)?;
        Ok(path)
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let (_sender, receiver) = channel::<()>();
        for _ in 0..REMOVALS_MAX {
            match fs::remove_dir_all(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let _ = receiver.recv_timeout(REMOVAL_PAUSE);
                }
                _ => return,
            }
        }
    }
}

fn nearest_existing(path: &Path) -> &Path {
    let found = path.ancestors().find(|path| path.as_os_str().is_empty() || path.exists());
    // The last ancestor of a relative path is empty.
    found.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn lock(path: &Path, creates: bool) -> io::Result<File> {
    let file = OpenOptions::new().create_new(creates).write(true).mode(LOCK_MODE).open(path)?;
    file.try_lock()?;
    Ok(file)
}

/// Whether a directory has the name of a process.
fn is_scratch_name(name: &str) -> bool {
    let parts = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(pid, random)| pid.parse::<u32>().is_ok() && u32::from_str_radix(random, 16).is_ok())
}

/// Removes directories whose lock is not held, because their process is gone. What cannot be removed stays.
fn remove_leftovers(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_scratch_name(&entry.file_name().to_string_lossy())) {
        if let Ok(_lock) = lock(&entry.path().join(LOCK), false) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_leftovers_without_a_process_are_removed() {
        let base = std::env::temp_dir().join(format!("cronhold-scratch-test-{}", std::process::id()));
        fs::create_dir_all(base.join("cronhold-bench-1-dead/keeper")).expect("made");
        fs::write(base.join("cronhold-bench-1-dead/lock"), "").expect("written");
        fs::create_dir_all(base.join("cronhold-bench-2-0dead0")).expect("made");
        fs::create_dir_all(base.join("cronhold-bench-mine")).expect("made");
        fs::write(base.join("cronhold-bench-mine/lock"), "").expect("written");
        fs::write(base.join("cronhold.db"), "").expect("written");
        let first = ScratchDirectory::create(&base.join("no/such/folder")).expect("a directory");
        let second = ScratchDirectory::create(&base).expect("a directory");
        assert!(first.path().join(LOCK).exists() && second.path() != first.path(), "it is in use");
        assert!(first.path().starts_with(&base) && first.subdirectory("a").expect("made").is_dir());
        drop((first, second));
        let mut left: Vec<_> = fs::read_dir(&base).expect("there").flatten().map(|entry| entry.file_name()).collect();
        left.sort();
        let others = ["cronhold-bench-2-0dead0", "cronhold-bench-mine", "cronhold.db"];
        assert_eq!(left, others, "another name, or no lock: they may belong to the user");
        let _ = fs::remove_dir_all(base);
    }

    #[test]
    fn nearest_existing_directory_is_found() {
        assert_eq!(nearest_existing(Path::new("/no-such-directory/a/b")), Path::new("/"));
        assert_eq!(nearest_existing(Path::new("no-such-directory/a")), Path::new("."));
        assert_eq!(nearest_existing(Path::new("src")), Path::new("src"));
    }
}

//! The lock that prevents two daemons from writing to one database: a file next to it, locked while the store is open
//! for writing. The system releases it when the process ends. Readers and backups do not take it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a process id in the file, at most.
const PID_LEN_MAX: u64 = 32;

/// A held lock; dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct LockFile {
    _file: File,
}

/// The inodes of a store's files when it was opened. If a file is removed or replaced later, the open store would write
/// to an unlinked file, and another daemon could start a new store at the same path.
#[derive(Debug)]
pub(crate) struct FileIdentity(Vec<(PathBuf, (u64, u64))>);

impl FileIdentity {
    /// The inodes of a database and of its lock file.
    pub(crate) fn of(database: &Path) -> io::Result<Self> {
        let files = [database.to_owned(), LockFile::path(database)].into_iter();
        files.map(|path| Ok((path.clone(), inode(&path)?))).collect::<io::Result<_>>().map(Self)
    }

    /// The first file that was removed or replaced.
    pub(crate) fn missing(&self) -> Option<&Path> {
        let has_changed = |(path, known): &&(PathBuf, (u64, u64))| inode(path).ok().as_ref() != Some(known);
        self.0.iter().find(has_changed).map(|(path, _)| path.as_path())
    }
}

fn inode(path: &Path) -> io::Result<(u64, u64)> {
    path.metadata().map(|file| (file.dev(), file.ino()))
}

/// Why the lock cannot be taken.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Another process holds it; its process id, if the lock file contains one.
    Held(Option<u32>),
    Io(io::Error),
}

impl LockFile {
    /// Takes the lock of a database, and writes the id of this process into the file.
    pub(crate) fn take(database: &Path) -> Result<Self, LockError> {
        let path = Self::path(database);
        // Not truncated: until the lock is taken, the content belongs to its holder.
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = open.map_err(LockError::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held(holder(&mut file))),
            Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        write_holder(&mut file).map_err(LockError::Io)?;
        Ok(Self { _file: file })
    }

    /// The path of the lock file of a database.
    pub(crate) fn path(database: &Path) -> PathBuf {
        let mut name = OsString::from(database);
        name.push(".lock");
        name.into()
    }
}

fn write_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(PID_LEN_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

//! The lock that keeps two daemons away from one database: a file beside it, locked as long as the store is open for
//! writing. The system frees it when the process ends, however it ends. Readers and backups need none.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The number of a process is not longer than this.
const PID_LEN_MAX: u64 = 32;

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct LockFile {
    _file: File,
}

/// The files of a store as they were when it was opened. Someone may remove or replace them under an open store, which
/// goes on writing to what nobody will find again, while another daemon can begin anew beside it.
#[derive(Debug)]
pub(crate) struct Footprint(Vec<(PathBuf, (u64, u64))>);

impl Footprint {
    /// Of a database that is open, and of its lock.
    pub(crate) fn of(database: &Path) -> io::Result<Self> {
        let files = [database.to_owned(), LockFile::path(database)].into_iter();
        files.map(|path| Ok((path.clone(), number(&path)?))).collect::<io::Result<_>>().map(Self)
    }

    /// The file that is not there any longer, if one is not.
    pub(crate) fn missing(&self) -> Option<&Path> {
        let is_other = |(path, known): &&(PathBuf, (u64, u64))| number(path).ok().as_ref() != Some(known);
        self.0.iter().find(is_other).map(|(path, _)| path.as_path())
    }
}

fn number(path: &Path) -> io::Result<(u64, u64)> {
    path.metadata().map(|file| (file.dev(), file.ino()))
}

/// Why the lock cannot be had.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Someone has it: a process with this number, if it could be read.
    Held(Option<u32>),
    /// The file cannot be made or locked.
    Io(io::Error),
}

impl LockFile {
    /// Takes the lock of a database, and writes into the file who has it.
    pub(crate) fn take(database: &Path) -> Result<Self, LockError> {
        let path = Self::path(database);
        // Not emptied: until the lock is had, what stands there is somebody else's.
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

    /// Where the lock of a database is.
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

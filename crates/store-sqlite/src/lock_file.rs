//! The lock that prevents two daemons from writing to one database: a file next to it, locked while the store is open
//! for writing. The system releases it when the process ends. Readers and backups do not take it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::open::FILE_MODE;

/// Bytes of the file that are read, at most.
const CONTENT_LEN_MAX: u64 = 64;

/// The second line of the file while a store is being created. If the process dies then, the database may be empty.
const CREATING: &str = "creating";

/// A held lock; dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct LockFile {
    file: File,
    was_creating: bool,
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
    /// Takes the lock of a database. Only the owner can open the file, because a user who can open it can lock it.
    pub(crate) fn take(database: &Path) -> Result<Self, LockError> {
        let path = Self::path(database);
        // Not truncated: until the lock is taken, the content belongs to its holder.
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let mut file = options.open(path).map_err(LockError::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held(holder(&mut file))),
            Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        let was_creating = content(&mut file).lines().nth(1) == Some(CREATING);
        // An older version created it for everyone. If another user owns it, its mode is theirs to change.
        let _ = file.set_permissions(Permissions::from_mode(FILE_MODE));
        Ok(Self { file, was_creating })
    }

    /// Whether the process that held the lock before died while it created the store.
    pub(crate) fn was_creating(&self) -> bool {
        self.was_creating
    }

    /// Writes the id of this process into the file, and whether it creates the store.
    pub(crate) fn write_holder(&mut self, is_creating: bool) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        let note = if is_creating { format!("{CREATING}\n") } else { String::new() };
        write!(self.file, "{}\n{note}", std::process::id())
    }

    /// The path of the lock file of a database.
    pub(crate) fn path(database: &Path) -> PathBuf {
        let mut name = OsString::from(database);
        name.push(".lock");
        name.into()
    }
}

fn content(file: &mut File) -> String {
    let mut text = String::new();
    // Whatever else is in the file, it is not a note of ours.
    let _ = file.rewind().and_then(|()| file.take(CONTENT_LEN_MAX).read_to_string(&mut text));
    text
}

/// The process that holds the lock: by the system's list of locks, otherwise by the file, if that process lives.
fn holder(file: &mut File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino();
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let is_alive = |pid: &u32| Path::new("/proc").join(pid.to_string()).exists();
    let listed = holder_in(&locks, inode).filter(is_alive);
    listed.or_else(|| content(file).lines().next()?.trim().parse().ok()).filter(is_alive)
}

/// The process that holds an exclusive lock of this inode, in the format of `/proc/locks`.
fn holder_in(locks: &str, inode: u64) -> Option<u32> {
    let place = format!(":{inode}");
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, _, pid, at, ..] if at.ends_with(&place) => pid.parse().ok(),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holder_is_found_in_the_list_of_locks() {
        let locks = "1: POSIX  ADVISORY  WRITE 700 08:01:4242 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 812 08:01:4242 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 813 08:01:4242 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 900 00:1b:142424 0 EOF\n";
        assert_eq!(holder_in(locks, 4242), Some(812));
        assert_eq!(holder_in(locks, 142_424), Some(900));
        assert_eq!(holder_in(locks, 7), None);
    }
}

//! Copies a store while a daemon writes to it. The copy is one snapshot, is checked for integrity, and gets its name
//! only when it is complete and on disk.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::open::{SqliteOpenError, check_reader, hint, make_private};

/// Pages that are copied between two progress reports: 4 MB.
const PAGES_PER_STEP: i32 = 1024;

/// Attempts for a step that is blocked by a lock.
const ATTEMPTS_MAX: u32 = 100;

/// The progress of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupProgress {
    /// Number of pages copied so far.
    pub done: u64,
    /// Number of pages of the database.
    pub total: u64,
}

/// Why a backup failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store cannot be read.
    #[error(transparent)]
    Open(#[from] SqliteOpenError),
    /// The target exists.
    #[error("{} already exists and was not changed (choose a path that does not exist)", .0.display())]
    Exists(PathBuf),
    /// The target cannot be written.
    #[error("cannot write the backup {}: {error}{}", .path.display(), hint(.error))]
    Io {
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// SQLite cannot write the target.
    #[error("cannot write the backup {}: {error}", .path.display())]
    Sqlite {
        path: PathBuf,
        /// The error of SQLite.
        error: rusqlite::Error,
    },
    /// Locks of other processes blocked the copy for too long.
    #[error("{} is locked by another process (try again later)", .0.display())]
    Busy(PathBuf),
    /// The copy fails the integrity check, so the store is corrupt.
    #[error("{} is corrupt: {what} (restore an earlier backup)", .path.display())]
    Damaged {
        path: PathBuf,
        /// The result of the check.
        what: String,
    },
}

/// Copies the store at `from` to a new file. It takes no lock, so a daemon may be writing at the same time.
pub fn backup(from: &Path, to: &Path, progress: &mut dyn FnMut(BackupProgress)) -> Result<(), BackupError> {
    let io = |error| BackupError::Io { path: to.to_owned(), error };
    let source = check_reader(from)?;
    if to.try_exists().map_err(io)? {
        return Err(BackupError::Exists(to.to_owned()));
    }
    let part = PartialFile::new(to).map_err(io)?;
    copy(&source, from, &part.0, progress)?;
    File::open(&part.0).and_then(|file| file.sync_all()).map_err(io)?;
    publish(&part.0, to).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Exists(to.to_owned()),
        _ => io(error),
    })
}

/// A temporary file next to the target. Dropping it removes the file.
struct PartialFile(PathBuf);

impl PartialFile {
    fn new(to: &Path) -> io::Result<Self> {
        let mut name = OsString::from(to);
        name.push(format!(".part-{}", std::process::id()));
        let part = Self(name.into());
        // An earlier process with the same id may have left one behind.
        part.remove();
        make_private(&part.0)?;
        Ok(part)
    }

    fn remove(&self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        self.remove();
    }
}

fn copy(
    source: &Connection,
    from: &Path,
    part: &Path,
    progress: &mut dyn FnMut(BackupProgress),
) -> Result<(), BackupError> {
    let sql = |error| BackupError::Sqlite { path: part.to_owned(), error };
    // The transaction holds one snapshot. Without it the copy would restart with each commit of a daemon.
    source.execute_batch("BEGIN; SELECT count(*) FROM meta").map_err(sql)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut target = Connection::open_with_flags(part, flags).map_err(sql)?;
    // The file is synced once, at the end.
    target.pragma_update(None, "synchronous", "off").map_err(sql)?;
    let steps = Backup::new(source, &mut target).map_err(sql)?;
    let mut attempts = 0;
    loop {
        let step = steps.step(PAGES_PER_STEP).map_err(sql)?;
        let pages = |count: i32| u64::try_from(count).unwrap_or(0);
        let rusqlite::backup::Progress { remaining, pagecount } = steps.progress();
        progress(BackupProgress { done: pages(pagecount - remaining), total: pages(pagecount) });
        match step {
            StepResult::Done => break,
            StepResult::Busy | StepResult::Locked if attempts < ATTEMPTS_MAX => attempts += 1,
            StepResult::Busy | StepResult::Locked => return Err(BackupError::Busy(from.to_owned())),
            _ => attempts = 0,
        }
    }
    drop(steps);
    // Without a log next to it.
    target.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(())).map_err(sql)?;
    let what: String = target.pragma_query_value(None, "integrity_check", |row| row.get(0)).map_err(sql)?;
    target.close().map_err(|(_, error)| sql(error))?;
    if what == "ok" { Ok(()) } else { Err(BackupError::Damaged { path: from.to_owned(), what }) }
}

/// Gives the finished file its name. Fails if the target exists by now.
fn publish(part: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(part, to) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
        // Some file systems do not support hard links.
        Err(_) => fs::rename(part, to)?,
    }
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

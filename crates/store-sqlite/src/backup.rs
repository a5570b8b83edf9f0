//! A copy of a store, made while a daemon writes to it. The copy is one moment of the store, is checked, and appears
//! under its name only when it is whole and on the disk.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::open::{OpenError, check_reader, hint, make_private};

/// Pages that are copied between two words of progress: 4 MB.
const PAGES_A_STEP: i32 = 1024;

/// A step is tried again so many times when someone is in its way.
const TRIES_MAX: u32 = 100;

/// How far a backup has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupProgress {
    /// Pages that are copied.
    pub done: u64,
    /// Pages in all.
    pub total: u64,
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is something of that name.
    #[error("{} is there already, and is left as it is (name a file that is not there)", .0.display())]
    Exists(PathBuf),
    /// The system refuses.
    #[error("the backup {} cannot be written: {error}{}", .path.display(), hint(.error))]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// SQLite refuses.
    #[error("the backup {} cannot be written: {error}", .path.display())]
    Sqlite {
        /// Which file.
        path: PathBuf,
        /// What SQLite says.
        error: rusqlite::Error,
    },
    /// Others were in the way too often.
    #[error("{} is locked by others (try again later)", .0.display())]
    Busy(PathBuf),
    /// The copy is not whole, so that the store is not either.
    #[error("{} is damaged: {what} (go back to an earlier backup)", .path.display())]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What the check says.
        what: String,
    },
}

/// Copies the store at `from` to a new file. It needs no lock, and works beside a daemon that writes.
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

/// An unfinished file beside the one that is wanted. It goes when it is dropped.
struct PartialFile(PathBuf);

impl PartialFile {
    fn new(to: &Path) -> io::Result<Self> {
        let mut name = OsString::from(to);
        name.push(format!(".part-{}", std::process::id()));
        let part = Self(name.into());
        // One that a process of the same number left behind is of no use to anyone.
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
    // One moment of the source is held, or the copy would begin anew with each commit of a daemon.
    source.execute_batch("BEGIN; SELECT count(*) FROM meta").map_err(sql)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut target = Connection::open_with_flags(part, flags).map_err(sql)?;
    // It is synced as a whole at the end.
    target.pragma_update(None, "synchronous", "off").map_err(sql)?;
    let steps = Backup::new(source, &mut target).map_err(sql)?;
    let mut tries = 0;
    loop {
        let step = steps.step(PAGES_A_STEP).map_err(sql)?;
        let pages = |count: i32| u64::try_from(count).unwrap_or(0);
        let rusqlite::backup::Progress { remaining, pagecount } = steps.progress();
        progress(BackupProgress { done: pages(pagecount - remaining), total: pages(pagecount) });
        match step {
            StepResult::Done => break,
            StepResult::Busy | StepResult::Locked if tries < TRIES_MAX => tries += 1,
            StepResult::Busy | StepResult::Locked => return Err(BackupError::Busy(from.to_owned())),
            _ => tries = 0,
        }
    }
    drop(steps);
    // One file with nothing beside it.
    target.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(())).map_err(sql)?;
    let what: String = target.pragma_query_value(None, "integrity_check", |row| row.get(0)).map_err(sql)?;
    target.close().map_err(|(_, error)| sql(error))?;
    if what == "ok" { Ok(()) } else { Err(BackupError::Damaged { path: from.to_owned(), what }) }
}

/// Gives the finished file its name, unless something has it by now.
fn publish(part: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(part, to) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
        // Some disks know no second name for a file.
        Err(_) => fs::rename(part, to)?,
    }
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

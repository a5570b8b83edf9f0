//! Opens database files, sets up connections, and reports everything that can be wrong with a file.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cronhold_schedule::ZoneRegistry;
use cronhold_store::ClockFn;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::lock_file::{LockError, LockFile};
use crate::log_check;
use crate::schema;

/// Options for opening a store.
#[derive(Clone)]
pub struct Options {
    /// The clock by which locks expire.
    pub clock: ClockFn,
    /// The time zones that jobs can use.
    pub zones: Arc<ZoneRegistry>,
    /// The maximum size of the file in bytes; `None` for no limit. Deleting records frees space.
    pub size_max: Option<u64>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("size_max", &self.size_max).finish_non_exhaustive()
    }
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SqliteOpenError {
    /// Another process has the file open for writing.
    #[error(
        "{} is in use by another process{} (stop that daemon first, or use its API; reading and `cronhold store backup` \
         work while it runs)", .path.display(), .pid.map(|pid| format!(" with pid {pid}")).unwrap_or_default()
    )]
    Locked {
        path: PathBuf,
        /// The id of that process, if the lock file has it.
        pid: Option<u32>,
    },
    /// The file is not an SQLite database.
    #[error("{} is not an SQLite database and was not changed (use another path)", .path.display())]
    NotSqlite { path: PathBuf },
    /// The file is a database of another program.
    #[error("{} is a database of another program and was not changed (use another path)", .path.display())]
    NotOurs { path: PathBuf },
    /// The file exists and has no content, although no store was being created.
    #[error(
        "{} is empty, so the store that was there is lost and was not replaced (restore a backup, or remove the file to \
         start with an empty store)", .path.display()
    )]
    Empty { path: PathBuf },
    /// The write-ahead log has lost commits that were confirmed.
    #[error(
        "{} is damaged: the latest changes of the store cannot be read, and nothing was changed (restore a backup, or \
         move this file away to continue without these changes)", .log.display()
    )]
    DamagedLog { log: PathBuf },
    /// A newer version of this program has written the file.
    #[error(
        "{} has schema version {found}, but this cronhold supports {known} and older (use the cronhold that wrote it, \
         or a later one, or restore a backup)", .path.display()
    )]
    Newer {
        path: PathBuf,
        /// The schema version of the file.
        found: usize,
        /// The newest schema version that this program supports.
        known: usize,
    },
    /// An older version of this program has written the file, and it is opened for reading only.
    #[error(
        "{} has schema version {found}, but reading requires {known} (a daemon of this version migrates it when it \
         starts)",
        .path.display()
    )]
    Older {
        path: PathBuf,
        /// The schema version of the file.
        found: usize,
        /// The schema version that reading requires.
        known: usize,
    },
    /// The file does not exist, and is opened for reading only.
    #[error("there is no store at {} (a daemon creates one when it starts)", .path.display())]
    Missing { path: PathBuf },
    /// The file has several hard links, so that the lock file next to one does not protect the others.
    #[error(
        "{} is a hard link: the same file has another name, under which another daemon could use it (make a copy with \
         `cronhold store backup`, and use that)", .path.display()
    )]
    ManyNames { path: PathBuf },
    /// The file cannot be accessed.
    #[error("cannot open {}: {error}{}", .path.display(), hint(.error))]
    Io {
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// SQLite cannot open the file.
    #[error("cannot open {}: {error}{}", .path.display(), sqlite_hint(.error))]
    Sqlite {
        path: PathBuf,
        /// The error of SQLite.
        error: rusqlite::Error,
    },
}

impl SqliteOpenError {
    pub(crate) fn sqlite(path: &Path, error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotSqlite { path: path.to_owned() },
            _ => Self::Sqlite { path: path.to_owned(), error },
        }
    }
}

/// The first bytes of every SQLite database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// How long a connection waits for a lock of another process, for example an `sqlite3` shell.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// The mode of a new file.
pub(crate) const FILE_MODE: u32 = 0o600;

/// Bytes of a page, fixed when a file is created.
pub(crate) const PAGE_SIZE: u64 = 4096;

/// Page cache of the writer, in KiB.
const WRITER_CACHE: i64 = 32 * 1024;

/// Page cache of a reader, in KiB.
const READER_CACHE: i64 = 4 * 1024;

/// The log file is truncated to this size when the log restarts.
const LOG_BYTES_MAX: i64 = 32 << 20;

/// Prepared statements that a connection caches.
const CACHED_STATEMENTS_MAX: usize = 128;

/// Opens a file for writing, and creates or migrates its tables.
pub(crate) fn open_first(path: &Path, options: &Options) -> Result<(LockFile, Connection), SqliteOpenError> {
    let io = |error| SqliteOpenError::Io { path: path.to_owned(), error };
    if path.metadata().is_ok_and(|file| file.nlink() > 1) {
        return Err(SqliteOpenError::ManyNames { path: path.to_owned() });
    }
    let mut lock = LockFile::take(path).map_err(|error| match error {
        LockError::Held(pid) => SqliteOpenError::Locked { path: path.to_owned(), pid },
        LockError::Io(error) => io(error),
    })?;
    if has_foreign_start(path).map_err(io)? {
        return Err(SqliteOpenError::NotSqlite { path: path.to_owned() });
    }
    if path.metadata().is_ok_and(|file| file.len() == 0) && !lock.was_creating() {
        return Err(SqliteOpenError::Empty { path: path.to_owned() });
    }
    if log_check::is_damaged(path).map_err(io)? {
        return Err(SqliteOpenError::DamagedLog { log: log_check::log_path(path) });
    }
    lock.write_holder(!path.exists() || lock.was_creating()).map_err(io)?;
    make_private(path).map_err(io)?;
    let mut connection = connect_writer(path, options).map_err(|error| SqliteOpenError::sqlite(path, error))?;
    schema::migrate(&mut connection, path, schema::STEPS)?;
    // Only now, because a file of another program must stay unchanged.
    set_journal(&connection).map_err(|error| SqliteOpenError::sqlite(path, error))?;
    lock.write_holder(false).map_err(io)?;
    Ok((lock, connection))
}

/// Creates a file that only its owner can read, because jobs and outputs may contain secrets. SQLite uses the same mode
/// for the files next to it. An existing file keeps its mode.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Opens a file for writing that was opened and checked before.
pub(crate) fn open_again(path: &Path, options: &Options) -> rusqlite::Result<Connection> {
    let connection = connect_writer(path, options)?;
    set_journal(&connection)?;
    Ok(connection)
}

/// Opens a file for reading.
pub(crate) fn connect_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    set_up(&connection, READER_CACHE)?;
    Ok(connection)
}

/// Checks that a file is a store of the current version, and opens it for reading.
pub(crate) fn check_reader(path: &Path) -> Result<Connection, SqliteOpenError> {
    if !path.exists() {
        return Err(SqliteOpenError::Missing { path: path.to_owned() });
    }
    let io = |error| SqliteOpenError::Io { path: path.to_owned(), error };
    if has_foreign_start(path).map_err(io)? {
        return Err(SqliteOpenError::NotSqlite { path: path.to_owned() });
    }
    let connection = connect_reader(path).map_err(|error| SqliteOpenError::sqlite(path, error))?;
    schema::check(&connection, path, schema::STEPS)?;
    Ok(connection)
}

fn connect_writer(path: &Path, options: &Options) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    set_up(&connection, WRITER_CACHE)?;
    // This has no effect on an existing file.
    connection.pragma_update(None, "page_size", PAGE_SIZE.cast_signed())?;
    if let Some(size) = options.size_max {
        let pages = (size / PAGE_SIZE).max(1).cast_signed();
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    Ok(connection)
}

fn set_up(connection: &Connection, cache: i64) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS_MAX);
    connection.pragma_update(None, "cache_size", -cache)?;
    connection.pragma_update(None, "temp_store", "memory")
}

/// A confirmed commit must be on disk, so every commit is synced. Automatic checkpoints are off: the writer does them
/// outside of commits.
fn set_journal(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_MAX, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))
}

/// Whether a file exists, is not empty and does not start like an SQLite database.
fn has_foreign_start(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut start = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut start)?;
    Ok(!start.is_empty() && start != MAGIC)
}

pub(crate) fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => " (create its directory first)",
        io::ErrorKind::PermissionDenied => " (run as a user with write permission there)",
        io::ErrorKind::StorageFull => " (free some disk space)",
        io::ErrorKind::ReadOnlyFilesystem => " (choose a path on a writable file system)",
        _ => "",
    }
}

fn sqlite_hint(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            " (the file and its directory must be writable)"
        }
        Some(ErrorCode::DatabaseBusy) => " (another process has locked it)",
        Some(ErrorCode::DiskFull) => " (free some disk space)",
        Some(ErrorCode::DatabaseCorrupt) => " (the file is corrupt; restore a backup)",
        _ => "",
    }
}

//! What SQLite's errors mean for whoever asked: whether anything happened, and whether trying again helps.

use std::path::Path;

use cronhold_store::Fault;
use rusqlite::{ErrorCode, ffi};

use crate::rows::Unreadable;

/// When an error came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// While something was read.
    Read,
    /// Before a transaction was told to become durable: all of it is undone.
    Write,
    /// While it was made durable.
    Commit,
}

/// What an error of SQLite means.
pub(crate) fn fault(path: &Path, error: &rusqlite::Error, moment: Moment) -> Fault {
    let told = |what: &str| format!("{}: {what} ({error})", path.display());
    let Some(code) = error.sqlite_error() else {
        return Fault::Broken(told("the statement does not fit"));
    };
    match (code.code, moment) {
        (ErrorCode::DiskFull, _) => Fault::ReadOnly(told("there is no room on the disk")),
        (ErrorCode::ReadOnly | ErrorCode::PermissionDenied, _) => {
            Fault::ReadOnly(told("the file or its disk takes no writes"))
        }
        (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => {
            Fault::Away(told("someone else keeps the database locked"))
        }
        // The last page that is written says that the others count. When it could not be written, none does.
        (ErrorCode::SystemIoFailure, Moment::Write) => Fault::ReadOnly(told("the disk does not take what is written")),
        (ErrorCode::SystemIoFailure, Moment::Commit) if code.extended_code == ffi::SQLITE_IOERR_WRITE => {
            Fault::ReadOnly(told("the disk does not take what is written"))
        }
        (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => {
            Fault::Broken(told("the file is damaged; go back to a backup"))
        }
        (_, Moment::Commit) => Fault::Unknown(told("the disk did not say whether it has it")),
        (ErrorCode::CannotOpen, _) => Fault::Away(told("the file cannot be opened")),
        (ErrorCode::SystemIoFailure, _) => Fault::Away(told("the disk cannot be read")),
        (ErrorCode::OutOfMemory, _) => Fault::Away(told("there is no memory left")),
        (ErrorCode::OperationInterrupted | ErrorCode::OperationAborted | ErrorCode::FileLockingProtocolFailed, _) => {
            Fault::Away(told("it was interrupted"))
        }
        _ => Fault::Broken(told("it refuses for good")),
    }
}

/// Whether an error says something of one statement alone: other units of the transaction are as they were.
pub(crate) fn is_of_one_unit(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => {
            matches!(code, ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
        }
        None => true,
    }
}

/// A row that cannot be read.
pub(crate) fn unreadable(path: &Path, table: &str, row: &str, error: &Unreadable) -> Fault {
    Fault::Broken(format!("{}: table {table}, row {row}, {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_fault() {
        use Moment::{Commit, Read, Write};
        for (code, moment, expected) in [
            (ffi::SQLITE_FULL, Write, "takes no writes: x.db: there is no room"),
            (ffi::SQLITE_FULL, Commit, "takes no writes: x.db: there is no room"),
            (ffi::SQLITE_READONLY, Write, "takes no writes: x.db: the file or its disk takes no writes"),
            (ffi::SQLITE_READONLY_DIRECTORY, Write, "takes no writes: x.db: the file or its disk"),
            (ffi::SQLITE_BUSY, Write, "is away: x.db: someone else keeps the database locked"),
            (ffi::SQLITE_BUSY, Commit, "is away: x.db: someone else keeps"),
            (ffi::SQLITE_LOCKED, Read, "is away: x.db: someone else keeps"),
            (ffi::SQLITE_IOERR_WRITE, Write, "takes no writes: x.db: the disk does not take"),
            (ffi::SQLITE_IOERR_WRITE, Commit, "takes no writes: x.db: the disk does not take"),
            (ffi::SQLITE_IOERR_FSYNC, Commit, "did not say whether it was done: x.db: the disk did not say"),
            (ffi::SQLITE_IOERR_READ, Read, "is away: x.db: the disk cannot be read"),
            (ffi::SQLITE_NOMEM, Commit, "did not say whether it was done"),
            (ffi::SQLITE_NOMEM, Write, "is away: x.db: there is no memory"),
            (ffi::SQLITE_CANTOPEN, Read, "is away: x.db: the file cannot be opened"),
            (ffi::SQLITE_CORRUPT, Read, "is broken: x.db: the file is damaged; go back to a backup"),
            (ffi::SQLITE_CORRUPT, Commit, "is broken: x.db: the file is damaged"),
            (ffi::SQLITE_NOTADB, Read, "is broken: x.db: the file is damaged"),
            (ffi::SQLITE_TOOBIG, Write, "is broken: x.db: it refuses for good"),
        ] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let found = fault(Path::new("x.db"), &error, moment).to_string();
            assert!(found.contains(expected), "{code} {moment:?}: {found}");
        }
    }

    #[test]
    fn some_errors_are_of_one_unit() {
        for (code, expected) in [
            (ffi::SQLITE_CONSTRAINT_DATATYPE, true),
            (ffi::SQLITE_TOOBIG, true),
            (ffi::SQLITE_FULL, false),
            (ffi::SQLITE_IOERR_WRITE, false),
            (ffi::SQLITE_BUSY, false),
        ] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            assert_eq!(is_of_one_unit(&error), expected, "{code}");
        }
    }
}

//! Maps SQLite errors to faults: whether the request took effect, and whether a retry helps.

use std::path::Path;

use cronhold_store::Fault;
use rusqlite::{ErrorCode, ffi};

/// What was being done when an error occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorPhase {
    Read,
    /// Writing within a transaction, which is rolled back as a whole.
    Write,
    /// Making a transaction durable.
    Commit,
}

/// The fault for an error of SQLite.
pub(crate) fn fault(path: &Path, error: &rusqlite::Error, phase: ErrorPhase) -> Fault {
    let message = |what: &str| format!("{}: {what} ({error})", path.display());
    let Some(code) = error.sqlite_error() else {
        return Fault::Permanent(message("invalid statement"));
    };
    match (code.code, phase) {
        (ErrorCode::DiskFull, _) => Fault::ReadOnly(message("the disk is full")),
        (ErrorCode::ReadOnly | ErrorCode::PermissionDenied, _) => {
            Fault::ReadOnly(message("the file or its disk is read-only"))
        }
        (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => {
            Fault::Unavailable(message("another process has locked the database"))
        }
        // The last page of a commit makes the others valid. If it could not be written, none of them counts.
        (ErrorCode::SystemIoFailure, ErrorPhase::Write) => Fault::ReadOnly(message("the disk rejects writes")),
        (ErrorCode::SystemIoFailure, ErrorPhase::Commit) if code.extended_code == ffi::SQLITE_IOERR_WRITE => {
            Fault::ReadOnly(message("the disk rejects writes"))
        }
        (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => {
            Fault::Permanent(message("the file is corrupt; restore a backup"))
        }
        (_, ErrorPhase::Commit) => Fault::OutcomeUnknown(message("the disk did not confirm the write")),
        (ErrorCode::CannotOpen, _) => Fault::Unavailable(message("the file cannot be opened")),
        (ErrorCode::SystemIoFailure, _) => Fault::Unavailable(message("the disk cannot be read")),
        (ErrorCode::OutOfMemory, _) => Fault::Unavailable(message("out of memory")),
        (ErrorCode::OperationInterrupted | ErrorCode::OperationAborted | ErrorCode::FileLockingProtocolFailed, _) => {
            Fault::Unavailable(message("interrupted"))
        }
        _ => Fault::Permanent(message("SQLite rejects the request")),
    }
}

/// Whether an error concerns one statement only, and does not affect other units of the transaction.
pub(crate) fn is_of_one_unit(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => {
            matches!(code, ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
        }
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_errors_map_to_fault_kinds() {
        use ErrorPhase::{Commit, Read, Write};
        for (code, phase, expected) in [
            (ffi::SQLITE_FULL, Write, "rejects writes: x.db: the disk is full"),
            (ffi::SQLITE_FULL, Commit, "rejects writes: x.db: the disk is full"),
            (ffi::SQLITE_READONLY, Write, "rejects writes: x.db: the file or its disk is read-only"),
            (ffi::SQLITE_READONLY_DIRECTORY, Write, "rejects writes: x.db: the file or its disk"),
            (ffi::SQLITE_BUSY, Write, "is unavailable: x.db: another process has locked the database"),
            (ffi::SQLITE_BUSY, Commit, "is unavailable: x.db: another process"),
            (ffi::SQLITE_LOCKED, Read, "is unavailable: x.db: another process"),
            (ffi::SQLITE_IOERR_WRITE, Write, "rejects writes: x.db: the disk rejects writes"),
            (ffi::SQLITE_IOERR_WRITE, Commit, "rejects writes: x.db: the disk rejects writes"),
            (ffi::SQLITE_IOERR_FSYNC, Commit, "did not confirm the request: x.db: the disk did not confirm"),
            (ffi::SQLITE_IOERR_READ, Read, "is unavailable: x.db: the disk cannot be read"),
            (ffi::SQLITE_NOMEM, Commit, "did not confirm the request"),
            (ffi::SQLITE_NOMEM, Write, "is unavailable: x.db: out of memory"),
            (ffi::SQLITE_CANTOPEN, Read, "is unavailable: x.db: the file cannot be opened"),
            (ffi::SQLITE_CORRUPT, Read, "failed permanently: x.db: the file is corrupt; restore a backup"),
            (ffi::SQLITE_CORRUPT, Commit, "failed permanently: x.db: the file is corrupt"),
            (ffi::SQLITE_NOTADB, Read, "failed permanently: x.db: the file is corrupt"),
            (ffi::SQLITE_TOOBIG, Write, "failed permanently: x.db: SQLite rejects the request"),
        ] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let found = fault(Path::new("x.db"), &error, phase).to_string();
            assert!(found.contains(expected), "{code} {phase:?}: {found}");
        }
    }

    #[test]
    fn constraint_and_size_errors_concern_one_unit() {
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

//! Tasks in the same file as jobs, with tables of their own.
//!
//! In reading order: `known` remembers the tasks that a transaction has read; `record` converts tasks, ports and processes to rows and back; `rows` has one statement for each
//! method of `TaskRows`; `write` carries out requests on the writer thread; `pages` reads lists; `store` implements the
//! `TaskStore` trait with them.

mod known;
mod pages;
mod record;
mod rows;
mod store;
mod write;

use cronhold_core::task::TaskRefusal;
use cronhold_store::Fault;
use rusqlite::Connection;

use self::known::KnownTasks;
pub use self::store::SqliteTaskStore;
pub(crate) use self::write::TaskWrite;
use crate::pool::ReadError;
use crate::rows::UnreadableRow;

/// The rows of tasks on a connection, within the transaction that is open there.
#[derive(Debug)]
pub(crate) struct TaskTransaction<'c> {
    connection: &'c Connection,
    known: KnownTasks,
}

/// Why rows of tasks cannot be read or changed.
#[derive(Debug)]
pub(crate) enum TaskRowError {
    Refused(TaskRefusal),
    Sql(rusqlite::Error),
    /// A row was damaged by hand.
    Unreadable(UnreadableRow),
}

impl<'c> TaskTransaction<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self { connection, known: KnownTasks::default() }
    }
}

impl From<TaskRefusal> for TaskRowError {
    fn from(refusal: TaskRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<rusqlite::Error> for TaskRowError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<UnreadableRow> for TaskRowError {
    fn from(error: UnreadableRow) -> Self {
        Self::Unreadable(error)
    }
}

/// Nothing is refused while rows are only read.
impl From<TaskRowError> for ReadError {
    fn from(error: TaskRowError) -> Self {
        match error {
            TaskRowError::Sql(error) => Self::Sql(error),
            TaskRowError::Refused(refusal) => Self::Fault(Fault::Permanent(refusal.to_string())),
            TaskRowError::Unreadable(error) => Self::Fault(to_fault(&error)),
        }
    }
}

/// The fault for a damaged row.
fn to_fault(error: &UnreadableRow) -> Fault {
    Fault::Permanent(format!("a row of the tables of tasks cannot be read: {error}"))
}

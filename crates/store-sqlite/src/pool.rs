//! Connections for reading, which happens on the thread of whoever asks. A reader sees everything that was answered as
//! done before it began, and never waits for the writer.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cronhold_store::Fault;
use rusqlite::Connection;

use crate::faults::{Moment, fault};
use crate::open::connect_reader;

/// So many connections are kept for the next reader. More of them can be in use.
const SPARE_MAX: usize = 4;

/// Connections for reading.
#[derive(Debug)]
pub(crate) struct Pool {
    path: PathBuf,
    spare: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, spare: Mutex::default() }
    }

    /// Reads everything at one moment.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, ReadError>) -> Result<T, Fault> {
        let told = |error: &rusqlite::Error| fault(&self.path, error, Moment::Read);
        let spare = self.spare().pop();
        let connection = spare.map_or_else(|| connect_reader(&self.path), Ok).map_err(|error| told(&error))?;
        let transact = |sql: &str| connection.prepare_cached(sql)?.raw_execute().map(drop);
        let result = transact("BEGIN").map_err(ReadError::from).and_then(|()| {
            let result = work(&connection);
            transact("ROLLBACK")?;
            result
        });
        // A connection that is still in a transaction is of no use to the next reader.
        if connection.is_autocommit() {
            let mut spare = self.spare();
            if spare.len() < SPARE_MAX {
                spare.push(connection);
            }
        }
        result.map_err(|error| match error {
            ReadError::Sql(error) => told(&error),
            ReadError::Fault(fault) => fault,
        })
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why something cannot be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    Sql(rusqlite::Error),
    Fault(Fault),
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

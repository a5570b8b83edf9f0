//! Connections for reading, on the thread of the caller. A reader sees every commit that was confirmed before it began,
//! and never waits for the writer.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use cronhold_store::Fault;
use cronhold_store::lock_mutex;
use rusqlite::Connection;

use crate::faults::{ErrorPhase, fault};
use crate::open::connect_reader;

/// Idle connections that are kept. More can be in use.
const IDLE_MAX: usize = 4;

/// A pool of read-only connections.
#[derive(Debug)]
pub(crate) struct ReaderPool {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl ReaderPool {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::default() }
    }

    /// Runs a read in one snapshot.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, ReadError>) -> Result<T, Fault> {
        let to_fault = |error: &rusqlite::Error| fault(&self.path, error, ErrorPhase::Read);
        let idle_connection = self.idle().pop();
        let connection =
            idle_connection.map_or_else(|| connect_reader(&self.path), Ok).map_err(|error| to_fault(&error))?;
        let transact = |sql: &str| connection.prepare_cached(sql)?.raw_execute().map(drop);
        let result = transact("BEGIN").map_err(ReadError::from).and_then(|()| {
            let result = work(&connection);
            transact("ROLLBACK")?;
            result
        });
        // A connection that is still in a transaction is not reused.
        if connection.is_autocommit() {
            let mut idle = self.idle();
            if idle.len() < IDLE_MAX {
                idle.push(connection);
            }
        }
        result.map_err(|error| match error {
            ReadError::Sql(error) => to_fault(&error),
            ReadError::Fault(fault) => fault,
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        lock_mutex(&self.idle)
    }
}

/// Why a read failed.
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

//! Reads records by key.

use std::path::Path;
use std::sync::Arc;

use cronhold_core::RunId;
use cronhold_core::record::{LockName, LockState, Record, RecordKey, RecordKind, RecordVersion, StoredRecord};
use cronhold_schedule::{Instant, ZoneRegistry};
use cronhold_store::{Fault, UnreadableRecord};
use rusqlite::{Connection, Row, params_from_iter};

use crate::pool::ReadError;
use crate::rows::{self, CellReader, RecordTable, UnreadableRow};

/// Reads records over one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableReader<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) path: &'a Path,
    pub(crate) zones: &'a ZoneRegistry,
}

impl TableReader<'_> {
    /// A record; `None` if it does not exist, or is an expired lock.
    pub(crate) fn load(&self, key: &RecordKey, now: Instant) -> Result<Option<StoredRecord>, ReadError> {
        let Some(table) = RecordTable::of(key.kind()) else {
            return if key.kind() == RecordKind::Lock { self.lock(key, now) } else { Ok(None) };
        };
        let mut statement = self.connection.prepare_cached(table.load())?;
        let mut rows = statement.query(params_from_iter(rows::key_cells(key)))?;
        let stored = rows.next()?.map(|row| self.stored(table, row)).transpose()?;
        // A span of skips is in the table of runs, and is not a run.
        Ok(stored.filter(|stored| stored.record.key().kind() == key.kind()))
    }

    /// Decodes a row.
    pub(crate) fn stored(&self, table: RecordTable, row: &Row<'_>) -> Result<StoredRecord, ReadError> {
        rows::read(table, row, self.zones).map_err(|error| {
            let (key, version) = rows::read_key(table, row);
            self.unreadable(table.layout().name, row, key, version, &error)
        })
    }

    /// The error for an unreadable row. Its reason has the first cell of the row, so that it can be found.
    fn unreadable(
        &self,
        table: &str,
        row: &Row<'_>,
        key: Option<RecordKey>,
        version: Option<RecordVersion>,
        error: &UnreadableRow,
    ) -> ReadError {
        let first = row.get_ref(0).ok().and_then(|cell| cell.as_str().ok()).unwrap_or("?");
        let reason = format!("{}: table {table}, row {first}, {error}", self.path.display());
        ReadError::Fault(Fault::Unreadable(Box::new(UnreadableRecord { key, version, reason })))
    }

    fn lock(&self, key: &RecordKey, now: Instant) -> Result<Option<StoredRecord>, ReadError> {
        let sql = "SELECT name, fence, holder, version, until FROM locks \
                   WHERE name = ?1 AND holder IS NOT NULL AND (until IS NULL OR until > ?2)";
        let mut statement = self.connection.prepare_cached(sql)?;
        let name = rows::key_cells(key).into_iter().next();
        let mut rows = statement.query((name, now.micros()))?;
        let stored = rows.next()?.map(|row| self.stored_lock(row)).transpose()?;
        Ok(stored)
    }

    /// Decodes a row of a held lock.
    pub(crate) fn stored_lock(&self, row: &Row<'_>) -> Result<StoredRecord, ReadError> {
        read_lock(row).map_err(|error| {
            let name = row.get_ref(0).ok().and_then(|cell| LockName::parse(cell.as_str().ok()?).ok());
            self.unreadable("locks", row, name.map(RecordKey::Lock), None, &error)
        })
    }
}

fn read_lock(row: &Row<'_>) -> Result<StoredRecord, UnreadableRow> {
    let reading = CellReader::new(row);
    let (name, fence) = (reading.parsed(LockName::parse)?, reading.integer()?);
    let (holder, version): (_, RecordVersion) = (reading.parsed(RunId::parse)?, reading.version()?);
    let lock = LockState { name, holder, fence, until: reading.option_instant()? };
    Ok(StoredRecord { version, record: Record::Lock(Arc::new(lock)) })
}

//! Appends to and deletes outputs of runs.

use cronhold_core::RunId;
use cronhold_store::Fault;
use rusqlite::{Connection, OptionalExtension, Statement};

use crate::outputs::PIECE_MAX;

/// The writer's statements on outputs.
#[derive(Debug)]
pub(super) struct OutputStatements<'c> {
    length: Statement<'c>,
    append: Statement<'c>,
    delete: Statement<'c>,
}

impl<'c> OutputStatements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            length: connection.prepare(crate::outputs::LENGTH)?,
            append: connection.prepare("INSERT INTO outputs (run, at, bytes) VALUES (?1, ?2, ?3)")?,
            delete: connection.prepare("DELETE FROM outputs WHERE run = ?1")?,
        })
    }

    /// Appends the part of `bytes` that is not stored yet; `from` is the position of the first. Returns the new length.
    pub(super) fn append(&mut self, run: RunId, from: u64, bytes: &[u8]) -> rusqlite::Result<Result<u64, Fault>> {
        let id = run.to_string();
        let length: u64 = self.length.query_row([&id], |row| row.get(0)).optional()?.unwrap_or(0);
        let Some(known) = length.checked_sub(from) else {
            let message = format!("cannot append to the output of run {run} at byte {from}: it has {length} bytes");
            return Ok(Err(Fault::Permanent(message)));
        };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let mut end = length;
        for piece in bytes.get(known..).unwrap_or_default().chunks(PIECE_MAX) {
            self.append.execute((&id, end, piece))?;
            end += piece.len() as u64;
        }
        Ok(Ok(end))
    }

    /// Deletes the output of a run.
    pub(super) fn delete(&mut self, run: RunId) -> rusqlite::Result<()> {
        self.delete.execute([run.to_string()]).map(drop)
    }
}

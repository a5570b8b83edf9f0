//! Outputs of runs, appended in pieces.

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

    /// Appends what is new of `bytes`, which begin at `from`. Answers with the length of the whole.
    pub(super) fn append(&mut self, run: RunId, from: u64, bytes: &[u8]) -> rusqlite::Result<Result<u64, Fault>> {
        let id = run.to_string();
        let length: u64 = self.length.query_row([&id], |row| row.get(0)).optional()?.unwrap_or(0);
        let Some(known) = length.checked_sub(from) else {
            let message = format!("the output of run {run} has {length} bytes; nothing can be appended at {from}");
            return Ok(Err(Fault::Broken(message)));
        };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let mut end = length;
        for piece in bytes.get(known..).unwrap_or_default().chunks(PIECE_MAX) {
            self.append.execute((&id, end, piece))?;
            end += piece.len() as u64;
        }
        Ok(Ok(end))
    }

    /// The output is not kept any longer; it goes with its run at the latest.
    pub(super) fn delete(&mut self, run: RunId) -> rusqlite::Result<()> {
        self.delete.execute([run.to_string()]).map(drop)
    }
}

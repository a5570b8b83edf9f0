//! The seal of the store. The writer checks it before each change, so it caches the reason.
//!
//! Invariant: a cached reason is the one that the open transaction would read. So the cache is cleared when a transaction
//! is rolled back, and when another connection has written to the file.

use cronhold_store::Fault;
use rusqlite::{Connection, OptionalExtension, Statement};

/// Reads the reason; no row if the store is not sealed.
pub(crate) const REASON: &str = "SELECT reason FROM seal";

/// The writer's statements on the seal.
#[derive(Debug)]
pub(super) struct SealStatements<'c> {
    read: Statement<'c>,
    write: Statement<'c>,
    delete: Statement<'c>,
    /// The reason, if it is cached; the inner `None` if the store is not sealed.
    cached: Option<Option<String>>,
}

impl<'c> SealStatements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            read: connection.prepare(REASON)?,
            write: connection
                .prepare("INSERT INTO seal (id, reason) VALUES (1, ?1) ON CONFLICT DO UPDATE SET reason = ?1")?,
            delete: connection.prepare("DELETE FROM seal")?,
            cached: None,
        })
    }

    /// The fault for a change, if the store is sealed.
    pub(super) fn fault(&mut self) -> rusqlite::Result<Option<Fault>> {
        let reason = match &self.cached {
            Some(reason) => reason,
            None => self.cached.insert(self.read.query_row([], |row| row.get(0)).optional()?),
        };
        Ok(reason.as_deref().map(Fault::sealed))
    }

    /// Seals the store with a reason, or unseals it.
    pub(super) fn set(&mut self, reason: Option<&str>) -> rusqlite::Result<()> {
        match reason {
            Some(reason) => self.write.execute([reason])?,
            None => self.delete.execute([])?,
        };
        self.cached = Some(reason.map(str::to_owned));
        Ok(())
    }

    pub(super) fn clear_cache(&mut self) {
        self.cached = None;
    }
}

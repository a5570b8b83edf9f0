//! The prepared statements of the writer thread.

use cronhold_core::record::{NodeRecord, RecordVersion};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Statement};

use super::locks::LockStatements;
use super::outputs::OutputStatements;
use super::request::{RowWrite, VersionCheck, WriteKind};
use super::seal::SealStatements;
use super::version_cache::VersionCache;
use crate::rows::RecordTable;

/// The writer's statements.
#[derive(Debug)]
pub(super) struct Statements<'c> {
    connection: &'c Connection,
    /// In the order of [`RecordTable::ALL`].
    tables: Vec<TableStatements<'c>>,
    pub(super) locks: LockStatements<'c>,
    pub(super) outputs: OutputStatements<'c>,
    pub(super) seal: SealStatements<'c>,
    version_cache: VersionCache,
    next_number: Statement<'c>,
    draining: Statement<'c>,
    others: Statement<'c>,
    begin: Statement<'c>,
    commit: Statement<'c>,
    rollback: Statement<'c>,
    save: Statement<'c>,
    undo: Statement<'c>,
    release: Statement<'c>,
}

#[derive(Debug)]
struct TableStatements<'c> {
    version: Statement<'c>,
    insert: Statement<'c>,
    update: Statement<'c>,
    /// Tried before `update` in a table with columns that rarely change.
    update_fixed: Option<Statement<'c>>,
    delete: Statement<'c>,
}

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let tables = RecordTable::ALL.iter().map(|table| {
            let layout = table.layout();
            Ok(TableStatements {
                version: connection.prepare(&layout.version())?,
                insert: connection.prepare(&layout.insert())?,
                update: connection.prepare(&layout.update())?,
                update_fixed: match layout.fixed {
                    [] => None,
                    _ => Some(connection.prepare(&layout.update_fixed())?),
                },
                delete: connection.prepare(&layout.delete())?,
            })
        });
        Ok(Self {
            connection,
            tables: tables.collect::<rusqlite::Result<_>>()?,
            locks: LockStatements::prepare(connection)?,
            outputs: OutputStatements::prepare(connection)?,
            seal: SealStatements::prepare(connection)?,
            version_cache: VersionCache::default(),
            others: connection.prepare("PRAGMA data_version")?,
            next_number: connection
                .prepare("UPDATE meta SET value = value + 1 WHERE name = ?1 AND value + 1 < ?2 RETURNING value")?,
            draining: connection.prepare("SELECT draining FROM nodes WHERE id = ?1 AND incarnation = ?2")?,
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            rollback: connection.prepare("ROLLBACK")?,
            save: connection.prepare("SAVEPOINT unit")?,
            undo: connection.prepare("ROLLBACK TO unit")?,
            release: connection.prepare("RELEASE unit")?,
        })
    }

    /// The connection, for statements that are prepared when they are first used.
    pub(super) const fn connection(&self) -> &'c Connection {
        self.connection
    }

    pub(super) fn begin(&mut self) -> rusqlite::Result<()> {
        self.begin.raw_execute()?;
        let others = self.others.query_row([], |row| row.get(0))?;
        if self.version_cache.begin(others) {
            self.seal.clear_cache();
        }
        Ok(())
    }

    pub(super) fn commit(&mut self) -> rusqlite::Result<()> {
        self.commit.raw_execute().map(drop)
    }

    /// Forgets what is cached, because the transaction that read them is rolled back.
    pub(super) fn clear_cache(&mut self) {
        self.version_cache.clear();
        self.seal.clear_cache();
    }

    pub(super) fn rollback(&mut self) -> rusqlite::Result<()> {
        self.rollback.raw_execute().map(drop)
    }

    /// Sets a savepoint.
    pub(super) fn save(&mut self) -> rusqlite::Result<()> {
        self.save.raw_execute().map(drop)
    }

    /// Releases the savepoint, and keeps or rolls back what was done since.
    pub(super) fn release(&mut self, keep: bool) -> rusqlite::Result<()> {
        if !keep {
            self.undo.raw_execute()?;
        }
        self.release.raw_execute().map(drop)
    }

    /// Whether a record has the expected version.
    pub(super) fn holds(&mut self, check: &VersionCheck) -> rusqlite::Result<bool> {
        if let Some(version) = self.version_cache.get(&check.key) {
            return Ok(version == check.expected);
        }
        let version = self.version(check.table, &check.cells)?;
        self.version_cache.insert(&check.key, version);
        Ok(version == check.expected)
    }

    /// The version of a record; `None` if it does not exist.
    pub(super) fn version(&mut self, table: RecordTable, key: &[Value]) -> rusqlite::Result<Option<RecordVersion>> {
        let statement = &mut self.tables[table as usize].version;
        bind(statement, key)?;
        let found = statement.raw_query().next()?.map(|row| row.get(0)).transpose()?;
        Ok(found.map(RecordVersion::from_bits))
    }

    /// Writes a record if it has the expected version, and returns whether it had.
    pub(super) fn write(&mut self, write: &RowWrite) -> rusqlite::Result<bool> {
        self.version_cache.remove(&write.key);
        let table = &mut self.tables[write.table as usize];
        let statement = match write.kind {
            WriteKind::Insert => &mut table.insert,
            WriteKind::Update => {
                if let Some(statement) = &mut table.update_fixed {
                    bind(statement, &write.cells)?;
                    if statement.raw_execute()? > 0 {
                        return Ok(true);
                    }
                }
                &mut table.update
            }
            WriteKind::Delete => &mut table.delete,
        };
        bind(statement, &write.cells)?;
        Ok(statement.raw_execute()? > 0)
    }

    /// The stored drain flag of this incarnation of a node; `None` if it is not stored.
    pub(super) fn is_draining(&mut self, node: &NodeRecord) -> rusqlite::Result<Option<bool>> {
        self.draining.query_row((node.id.to_string(), node.incarnation), |row| row.get(0)).optional()
    }

    /// Increments the counter of this name; `None` if it would reach the limit.
    pub(super) fn next_number(&mut self, name: &str, below: u64) -> rusqlite::Result<Option<u64>> {
        self.next_number.query_row((name, below), |row| row.get(0)).optional()
    }
}

fn bind(statement: &mut Statement<'_>, cells: &[Value]) -> rusqlite::Result<()> {
    for (index, cell) in cells.iter().enumerate() {
        statement.raw_bind_parameter(index + 1, cell)?;
    }
    Ok(())
}

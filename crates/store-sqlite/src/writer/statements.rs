//! Everything that the writer does inside a transaction, as statements that are prepared once.

use cronhold_core::record::{Node, Version};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Statement};

use super::locks::LockStatements;
use super::memory::Memory;
use super::outputs::OutputStatements;
use super::request::{Check, How, Write};
use crate::rows::Table;

/// The writer's statements.
#[derive(Debug)]
pub(super) struct Statements<'c> {
    /// In the order of [`Table::ALL`].
    tables: Vec<TableStatements<'c>>,
    pub(super) locks: LockStatements<'c>,
    pub(super) outputs: OutputStatements<'c>,
    memory: Memory,
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
    /// What is tried before that, in a table that has columns which seldom change.
    update_fixed: Option<Statement<'c>>,
    delete: Statement<'c>,
}

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let tables = Table::ALL.iter().map(|table| {
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
            tables: tables.collect::<rusqlite::Result<_>>()?,
            locks: LockStatements::prepare(connection)?,
            outputs: OutputStatements::prepare(connection)?,
            memory: Memory::default(),
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

    pub(super) fn begin(&mut self) -> rusqlite::Result<()> {
        self.begin.raw_execute()?;
        let others = self.others.query_row([], |row| row.get(0))?;
        self.memory.begin(others);
        Ok(())
    }

    pub(super) fn commit(&mut self) -> rusqlite::Result<()> {
        self.commit.raw_execute().map(drop)
    }

    /// What was read in a transaction that is undone is not to be trusted.
    pub(super) fn forget_all(&mut self) {
        self.memory.forget_all();
    }

    pub(super) fn rollback(&mut self) -> rusqlite::Result<()> {
        self.rollback.raw_execute().map(drop)
    }

    /// Begins a part of the transaction that can be undone by itself.
    pub(super) fn save(&mut self) -> rusqlite::Result<()> {
        self.save.raw_execute().map(drop)
    }

    /// Ends that part, with or without what it did.
    pub(super) fn release(&mut self, keep: bool) -> rusqlite::Result<()> {
        if !keep {
            self.undo.raw_execute()?;
        }
        self.release.raw_execute().map(drop)
    }

    /// Whether a record has the version it must have.
    pub(super) fn holds(&mut self, check: &Check) -> rusqlite::Result<bool> {
        if let Some(version) = self.memory.get(&check.key) {
            return Ok(version == check.expected);
        }
        let version = self.version(check.table, &check.cells)?;
        self.memory.learn(&check.key, version);
        Ok(version == check.expected)
    }

    /// The version that a record has.
    pub(super) fn version(&mut self, table: Table, key: &[Value]) -> rusqlite::Result<Option<Version>> {
        let statement = &mut self.tables[table as usize].version;
        bind(statement, key)?;
        let found = statement.raw_query().next()?.map(|row| row.get(0)).transpose()?;
        Ok(found.map(Version::from_bits))
    }

    /// Writes a record if it has the version it must have, and answers whether it had.
    pub(super) fn write(&mut self, write: &Write) -> rusqlite::Result<bool> {
        self.memory.forget(&write.key);
        let table = &mut self.tables[write.table as usize];
        let statement = match write.how {
            How::Insert => &mut table.insert,
            How::Update => {
                if let Some(statement) = &mut table.update_fixed {
                    bind(statement, &write.cells)?;
                    if statement.raw_execute()? > 0 {
                        return Ok(true);
                    }
                }
                &mut table.update
            }
            How::Delete => &mut table.delete,
        };
        bind(statement, &write.cells)?;
        Ok(statement.raw_execute()? > 0)
    }

    /// Whether a node was told to drain in this life.
    pub(super) fn is_draining(&mut self, node: &Node) -> rusqlite::Result<Option<bool>> {
        self.draining.query_row((node.id.to_string(), node.incarnation), |row| row.get(0)).optional()
    }

    /// The next of the numbers of that name, as long as it is below a limit.
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

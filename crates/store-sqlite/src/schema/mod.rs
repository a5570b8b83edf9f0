//! The schema and its migrations. A version is a step that is applied to older files; released steps never change.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::SqliteOpenError;

/// The `application_id` of our files: "CRHD".
pub(crate) const APPLICATION_ID: i32 = 0x4352_4844;

/// All migrations. Step n leads from version n - 1 to version n.
pub(crate) const STEPS: &[&str] = &[
    include_str!("v1.sql"),
    include_str!("v2.sql"),
    include_str!("v3.sql"),
    include_str!("v4.sql"),
    include_str!("v5.sql"),
    include_str!("v6.sql"),
    include_str!("v7.sql"),
    include_str!("v8.sql"),
    include_str!("v9.sql"),
    include_str!("v10.sql"),
    include_str!("v11.sql"),
    include_str!("v12.sql"),
    include_str!("v13.sql"),
    include_str!("v14.sql"),
    include_str!("v15.sql"),
    include_str!("v16.sql"),
    include_str!("v17.sql"),
    include_str!("v18.sql"),
];

/// What a database file contains.
#[derive(Debug, PartialEq, Eq)]
enum SchemaState {
    /// A new file, without tables.
    Empty,
    /// A store with a schema of this version.
    Store(usize),
}

/// Migrates a file to the newest version.
pub(crate) fn migrate(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), SqliteOpenError> {
    let sql = |error| SqliteOpenError::sqlite(path, error);
    let first = match examine(connection, path, steps.len())? {
        SchemaState::Empty => 0,
        SchemaState::Store(version) => version,
    };
    for (index, step) in steps.iter().enumerate().skip(first) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
        transaction.execute_batch(step).map_err(sql)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(sql)?;
        transaction.pragma_update(None, "user_version", index + 1).map_err(sql)?;
        transaction.commit().map_err(sql)?;
        tracing::debug!(event = "sqlite_migrated", version = index + 1, "migrated the schema to version {}", index + 1);
    }
    Ok(())
}

/// Fails unless the file is a store of the newest version. Changes nothing.
pub(crate) fn check(connection: &Connection, path: &Path, steps: &[&str]) -> Result<(), SqliteOpenError> {
    match examine(connection, path, steps.len())? {
        SchemaState::Store(version) if version == steps.len() => Ok(()),
        SchemaState::Store(version) => {
            Err(SqliteOpenError::Older { path: path.to_owned(), found: version, known: steps.len() })
        }
        SchemaState::Empty => Err(SqliteOpenError::NotOurs { path: path.to_owned() }),
    }
}

/// Finds out what a file contains, without changing it. Fails if the file belongs to another program or to a newer
/// version.
fn examine(connection: &Connection, path: &Path, known: usize) -> Result<SchemaState, SqliteOpenError> {
    let sql = |error| SqliteOpenError::sqlite(path, error);
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(sql);
    let (application, version) = (number("application_id")?, number("user_version")?);
    if application == i64::from(APPLICATION_ID) {
        let found = usize::try_from(version).unwrap_or(0);
        return match found {
            0 => Err(SqliteOpenError::NotOurs { path: path.to_owned() }),
            _ if found > known => Err(SqliteOpenError::Newer { path: path.to_owned(), found, known }),
            _ => Ok(SchemaState::Store(found)),
        };
    }
    let objects: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(sql)?;
    if application == 0 && version == 0 && objects == 0 {
        return Ok(SchemaState::Empty);
    }
    Err(SqliteOpenError::NotOurs { path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(connection: &Connection) -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number")
    }

    #[test]
    fn older_schema_runs_missing_migrations() {
        let path = Path::new("x.db");
        let mut connection = Connection::open_in_memory().expect("memory");
        migrate(&mut connection, path, &["CREATE TABLE a (x)"]).expect("first");
        connection.execute("INSERT INTO a VALUES (7)", []).expect("a row");
        let steps = ["CREATE TABLE a (x)", "ALTER TABLE a ADD COLUMN y DEFAULT 8", "CREATE TABLE b AS SELECT * FROM a"];
        assert!(matches!(check(&connection, path, &steps), Err(SqliteOpenError::Older { found: 1, known: 3, .. })));
        migrate(&mut connection, path, &steps).expect("the others");
        assert_eq!(version(&connection), 3);
        let kept: (i64, i64) =
            connection.query_row("SELECT x, y FROM b", [], |row| Ok((row.get(0)?, row.get(1)?))).expect("a row");
        assert_eq!(kept, (7, 8));
        migrate(&mut connection, path, &steps).expect("nothing is left to do");
        check(&connection, path, &steps).expect("it is the newest");
    }

    #[test]
    fn every_version_migrates_to_the_newest() {
        let path = Path::new("x.db");
        let objects = |connection: &Connection| -> Vec<(String, Option<String>)> {
            let sql = "SELECT name, sql FROM sqlite_schema ORDER BY name";
            let mut statement = connection.prepare(sql).expect("a question");
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("an answer");
            rows.collect::<Result<_, _>>().expect("rows")
        };
        let mut newest = Connection::open_in_memory().expect("memory");
        migrate(&mut newest, path, STEPS).expect("all steps");
        for version in 1..STEPS.len() {
            let mut connection = Connection::open_in_memory().expect("memory");
            migrate(&mut connection, path, &STEPS[..version]).expect("the first ones");
            assert_ne!(objects(&connection), objects(&newest), "version {version}");
            migrate(&mut connection, path, STEPS).expect("the others");
            assert_eq!(objects(&connection), objects(&newest), "version {version}");
        }
    }

    #[test]
    fn failed_migration_is_rolled_back() {
        let path = Path::new("x.db");
        let mut connection = Connection::open_in_memory().expect("memory");
        migrate(&mut connection, path, &["CREATE TABLE a (x)"]).expect("first");
        let steps = ["CREATE TABLE a (x)", "CREATE TABLE b (x); CREATE TABLE a (x)"];
        migrate(&mut connection, path, &steps).expect_err("there is a table of that name");
        assert_eq!(version(&connection), 1);
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).expect("a number");
        assert_eq!(tables, 1);
    }

    #[test]
    fn newer_and_foreign_files_are_refused() {
        let path = Path::new("x.db");
        let mut connection = Connection::open_in_memory().expect("memory");
        migrate(&mut connection, path, &["SELECT 1; CREATE TABLE a (x)", "CREATE TABLE b (x)"]).expect("two steps");
        let error = migrate(&mut connection, path, &["CREATE TABLE a (x)"]).expect_err("newer");
        let text = error.to_string();
        assert!(text.contains("schema version 2") && text.contains("supports 1"), "{text}");

        let mut foreign = Connection::open_in_memory().expect("memory");
        foreign.execute_batch("CREATE TABLE songs (title)").expect("a table");
        assert!(matches!(migrate(&mut foreign, path, STEPS), Err(SqliteOpenError::NotOurs { .. })));
        let mut marked = Connection::open_in_memory().expect("memory");
        marked.pragma_update(None, "application_id", 77).expect("a mark");
        assert!(matches!(migrate(&mut marked, path, STEPS), Err(SqliteOpenError::NotOurs { .. })));
    }
}

//! Walks through all rows of a table, ordered by its primary key. A place is the key of the last row, as it is stored, so
//! that a row that cannot be read does not stop the walk.

use cronhold_core::record::RecordKind;
use cronhold_schedule::Instant;
use cronhold_store::{Fault, WalkPage, WalkPlace};
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use crate::listing::bounded;
use crate::pool::ReadError;
use crate::records::TableReader;
use crate::rows::RecordTable;

/// Separates the parts of a place. Only the last column of a key can contain it.
const BETWEEN: u8 = 0;

impl TableReader<'_> {
    /// Some records of a kind, and where the walk continues.
    pub(crate) fn walk(
        &self,
        kind: RecordKind,
        from: Option<&WalkPlace>,
        limit: usize,
        now: Instant,
    ) -> Result<WalkPage, ReadError> {
        let limit = limit.max(1);
        if kind == RecordKind::Lock {
            return self.walk_locks(from, limit, now);
        }
        let Some(table) = RecordTable::of(kind) else { return Ok(WalkPage::default()) };
        let layout = table.layout();
        let after = from.map(|place| key_values(place, layout.key.len()));
        let mut statement = self.connection.prepare_cached(&walk_sql(table, after.as_deref()))?;
        let mut rows =
            statement.query(params_from_iter(after.unwrap_or_default().into_iter().chain([bounded(limit)])))?;
        let (mut page, mut count) = (WalkPage::default(), 0);
        while let Some(row) = rows.next()? {
            count += 1;
            page.next = place(row, layout.key.len());
            match self.stored(table, row) {
                // Runs and spans of skips are in one table.
                Ok(stored) if stored.record.key().kind() != kind => {}
                Ok(stored) => page.records.push(stored),
                Err(ReadError::Fault(Fault::Unreadable(record))) => page.unreadable.push(*record),
                Err(error) => return Err(error),
            }
        }
        page.next = page.next.filter(|_| count == limit);
        Ok(page)
    }

    fn walk_locks(&self, from: Option<&WalkPlace>, limit: usize, now: Instant) -> Result<WalkPage, ReadError> {
        let name = from.map_or(Value::Text(String::new()), |place| Value::Blob(place.0.clone()));
        let mut statement = self.connection.prepare_cached(WALK_LOCKS)?;
        let mut rows = statement.query((name, now.micros(), bounded(limit)))?;
        let (mut page, mut count) = (WalkPage::default(), 0);
        while let Some(row) = rows.next()? {
            count += 1;
            page.next = place(row, 1);
            match self.stored_lock(row) {
                Ok(stored) => page.records.push(stored),
                Err(ReadError::Fault(Fault::Unreadable(record))) => page.unreadable.push(*record),
                Err(error) => return Err(error),
            }
        }
        page.next = page.next.filter(|_| count == limit);
        Ok(page)
    }
}

/// No name comes before the empty text.
const WALK_LOCKS: &str = "SELECT name, fence, holder, version, until FROM locks \
     WHERE name > CAST(?1 AS TEXT) AND holder IS NOT NULL AND (until IS NULL OR until > ?2) ORDER BY name LIMIT ?3";

/// The query for rows after a key. SQLite uses the whole primary key only for parameters without a cast.
fn walk_sql(table: RecordTable, after: Option<&[Value]>) -> String {
    let layout = table.layout();
    let keys = layout.key.join(", ");
    let parameter = |value: &Value| if matches!(value, Value::Blob(_)) { "CAST(? AS TEXT)" } else { "?" };
    let clause = after.map(|values| {
        let parameters: Vec<&str> = values.iter().map(parameter).collect();
        format!(" WHERE ({keys}) > ({})", parameters.join(", "))
    });
    format!("{}{} ORDER BY {keys} LIMIT ?", layout.select(), clause.unwrap_or_default())
}

/// The place of a row; `None` for a table that has only one row, whose key is not a text.
fn place(row: &Row<'_>, columns: usize) -> Option<WalkPlace> {
    let texts = (0..columns).map(|column| row.get_ref(column).ok()?.as_bytes().ok());
    Some(WalkPlace(texts.collect::<Option<Vec<&[u8]>>>()?.join(&BETWEEN)))
}

/// The cells of a place: texts, and damaged texts as bytes.
fn key_values(place: &WalkPlace, columns: usize) -> Vec<Value> {
    let texts = place.0.splitn(columns, |byte| *byte == BETWEEN).map(<[u8]>::to_vec);
    texts
        .map(|text| String::from_utf8(text).map_or_else(|error| Value::Blob(error.into_bytes()), Value::Text))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::testing::{plan, schema};

    #[test]
    fn walks_continue_by_primary_key() {
        let connection = schema();
        for (table, expected) in [
            (RecordTable::Jobs, "SEARCH jobs USING PRIMARY KEY (id>?)"),
            (RecordTable::Cursors, "SEARCH cursors USING PRIMARY KEY ((job,schedule)>(?,?))"),
            (RecordTable::Identities, "SEARCH identities USING PRIMARY KEY ((job,args)>(?,?))"),
            (RecordTable::Runs, "SEARCH runs USING INDEX sqlite_autoindex_runs_1 (id>?)"),
        ] {
            let after = key_values(&WalkPlace(b"a\0b".to_vec()), table.layout().key.len());
            assert_eq!(plan(&connection, &walk_sql(table, Some(&after))), expected);
        }
        assert_eq!(plan(&connection, WALK_LOCKS), "SEARCH locks USING PRIMARY KEY (name>?)");
    }
}

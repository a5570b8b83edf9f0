//! Reads pages of records, and due obligations. Each query uses a primary key or an index, and continues where the page
//! before ended.

use std::cmp::Ordering;

use cronhold_core::record::{ActionId, RecordKey, RecordKind, ScheduleId};
use cronhold_core::{JobId, RunId};
use cronhold_schedule::Instant;
use cronhold_store::{Fault, Obligation, Page, Query};
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use crate::pool::ReadError;
use crate::records::TableReader;
use crate::rows::{self, CellReader, RecordTable, UnreadableRow};

/// Builds the conditions of a query, with their parameters.
#[derive(Debug, Default)]
pub(crate) struct SqlCondition {
    terms: Vec<String>,
    pub(crate) values: Vec<Value>,
}

impl SqlCondition {
    /// Adds a term with `?` for each value.
    pub(crate) fn and(&mut self, term: &str, values: impl IntoIterator<Item = Value>) {
        self.terms.push(term.to_owned());
        self.values.extend(values);
    }

    pub(crate) fn text(&mut self, term: &str, value: &str) {
        self.and(term, [Value::Text(value.to_owned())]);
    }

    pub(crate) fn clause(&self) -> String {
        if self.terms.is_empty() { String::new() } else { format!(" WHERE {}", self.terms.join(" AND ")) }
    }
}

impl TableReader<'_> {
    /// A page of the list that the query selects.
    pub(crate) fn page(&self, query: &Query, limit: usize) -> Result<Page, ReadError> {
        let Listing { table, sql, values } = match query {
            Query::Runs(query) => Listing::of_runs(query, limit, self.connection)?,
            _ => Listing::of(query, limit),
        };
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let mut page = Page::default();
        while let Some(row) = rows.next()? {
            match self.stored(table, row) {
                Ok(stored) => page.push(stored),
                // An unreadable row must not hide the others.
                Err(ReadError::Fault(Fault::Unreadable(record))) => page.push_unreadable(*record),
                Err(error) => return Err(error),
            }
        }
        match page.unreadable.last() {
            // Without a key after which the next page could begin, the page would look like the end of the list.
            Some(record) if page.last.is_none() && page.len() >= limit => {
                Err(ReadError::Fault(Fault::Unreadable(Box::new(record.clone()))))
            }
            _ => Ok(page),
        }
    }

    /// Obligations that are due at or before `until`, by time and then by key.
    pub(crate) fn due(
        &self,
        after: Option<&Obligation>,
        until: Instant,
        limit: usize,
    ) -> Result<Vec<Obligation>, ReadError> {
        let mut due = Vec::new();
        for place in &DUE {
            let (sql, values) = Listing::due(place, after, until);
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(values.into_iter().chain([bounded(limit)])))?;
            while let Some(row) = rows.next()? {
                // A row whose key cannot be read is named by the list of its table, and must not stop the others.
                due.extend(obligation(place.kind, row));
            }
        }
        due.sort();
        due.truncate(limit);
        Ok(due)
    }
}

/// A query with its parameters.
#[derive(Debug)]
pub(crate) struct Listing {
    table: RecordTable,
    pub(crate) sql: String,
    values: Vec<Value>,
}

impl Listing {
    /// The query; its last parameter is the limit.
    pub(crate) fn new(table: RecordTable, sql: String, wanted: SqlCondition, limit: usize) -> Self {
        let mut values = wanted.values;
        values.push(bounded(limit));
        Self { table, sql, values }
    }

    fn of(query: &Query, limit: usize) -> Self {
        let mut wanted = SqlCondition::default();
        let (table, order) = match query {
            Query::Jobs { after } => {
                after.iter().for_each(|after| wanted.text("id > ?", after.as_str()));
                (RecordTable::Jobs, "id")
            }
            Query::JobStates { after } => {
                after.iter().for_each(|after| wanted.text("job > ?", after.as_str()));
                (RecordTable::JobStates, "job")
            }
            Query::Cursors { after } => {
                wanted.after_schedule(after.as_ref());
                (RecordTable::Cursors, "job, schedule")
            }
            Query::Backlogs { after } => {
                wanted.after_schedule(after.as_ref());
                (RecordTable::Backlogs, "job, schedule")
            }
            Query::Identities { after } => {
                if let Some((job, args)) = after {
                    let key = RecordKey::Identity(job.clone(), args.clone());
                    wanted.and("(job, args) > (?, ?)", rows::key_cells(&key));
                }
                (RecordTable::Identities, "job, args")
            }
            Query::IdentitiesOf { job } => {
                wanted.text("job = ?", job.as_str());
                (RecordTable::Identities, "args")
            }
            Query::Nodes { after } => {
                after.iter().for_each(|after| wanted.text("id > ?", &after.to_string()));
                (RecordTable::Nodes, "id")
            }
            Query::PendingActions { after } => {
                wanted.and("due IS NOT NULL", []);
                after.iter().for_each(|after| wanted.text("id > ?", &after.to_string()));
                (RecordTable::Actions, "id")
            }
            Query::PendingTriggers { after } => {
                wanted.and("due IS NOT NULL", []);
                after.iter().for_each(|after| wanted.text("job > ?", after.as_str()));
                (RecordTable::Triggers, "job")
            }
            Query::Pools { after } => {
                after.iter().for_each(|after| wanted.text("name > ?", after.as_str()));
                (RecordTable::Pools, "name")
            }
            // Queries with filters are in `run_listing`.
            Query::Runs(_) => (RecordTable::Runs, "id DESC"),
            Query::Oldest { job, state, after } => {
                wanted.text("job = ?", job.as_str());
                // The `+` keeps SQLite from using the index of the state, which would scan the runs of all jobs.
                wanted.text("+state = ?", state.name());
                wanted.and("NOT open", []);
                after.iter().for_each(|after| wanted.text("id > ?", &after.to_string()));
                (RecordTable::Runs, "id")
            }
            Query::Unfinished { node, after } => {
                wanted.and("open", []);
                node.iter().for_each(|node| wanted.text("node = ?", &node.to_string()));
                after.iter().for_each(|after| wanted.text("id > ?", &after.to_string()));
                (RecordTable::Runs, "id")
            }
        };
        let sql = format!("{}{} ORDER BY {order} LIMIT ?", table.layout().select(), wanted.clause());
        Self::new(table, sql, wanted, limit)
    }

    /// The query for due rows of a table.
    fn due(place: &DueRow, after: Option<&Obligation>, until: Instant) -> (String, Vec<Value>) {
        let mut wanted = SqlCondition::default();
        wanted.due(place, after, until);
        let DueRow { table, column, keys, .. } = place;
        let clause = wanted.clause();
        (format!("SELECT {keys}, {column} FROM {table}{clause} ORDER BY {column}, {keys} LIMIT ?"), wanted.values)
    }
}

impl SqlCondition {
    fn after_schedule(&mut self, after: Option<&(JobId, ScheduleId)>) {
        if let Some((job, schedule)) = after {
            let values = [job.as_str(), schedule.as_str()].map(|text| Value::Text(text.to_owned()));
            self.and("(job, schedule) > (?, ?)", values);
        }
    }

    fn due(&mut self, place: &DueRow, after: Option<&Obligation>, until: Instant) {
        let DueRow { kind, column, keys, is_due, .. } = place;
        self.and(is_due, []);
        self.and(&format!("{column} <= ?"), [Value::Integer(until.micros())]);
        if let Some(minutes) = place.minutes {
            let since = after.map_or(i64::MIN, |after| rows::minute(after.at));
            let values = [since, rows::minute(until)].map(Value::Integer);
            self.and(&format!("{minutes} BETWEEN ? AND ?"), values);
        }
        let Some(Obligation { at, key }) = after else { return };
        let at = Value::Integer(at.micros());
        match kind.cmp(&key.kind()) {
            Ordering::Less => self.and(&format!("{column} > ?"), [at]),
            Ordering::Greater => self.and(&format!("{column} >= ?"), [at]),
            Ordering::Equal => {
                let cells = rows::key_cells(key);
                let places = vec!["?"; cells.len() + 1].join(", ");
                self.and(&format!("({column}, {keys}) > ({places})"), [at].into_iter().chain(cells));
            }
        }
    }
}

/// A table whose records can be due.
struct DueRow {
    kind: RecordKind,
    table: &'static str,
    column: &'static str,
    keys: &'static str,
    /// The condition of the partial index of due records.
    is_due: &'static str,
    /// The column of that index, if it has only the minute.
    minutes: Option<&'static str>,
}

const DUE: [DueRow; 5] = [
    DueRow {
        kind: RecordKind::Cursor,
        table: "cursors",
        column: "wake",
        keys: "job, schedule",
        is_due: "wake_minute IS NOT NULL",
        minutes: Some("wake_minute"),
    },
    DueRow {
        kind: RecordKind::Backlog,
        table: "backlogs",
        column: "due",
        keys: "job, schedule",
        is_due: "due IS NOT NULL",
        minutes: None,
    },
    DueRow { kind: RecordKind::Run, table: "runs", column: "due", keys: "id", is_due: "open", minutes: None },
    DueRow {
        kind: RecordKind::Action,
        table: "actions",
        column: "due",
        keys: "id",
        is_due: "due IS NOT NULL",
        minutes: None,
    },
    DueRow {
        kind: RecordKind::Triggers,
        table: "triggers",
        column: "due",
        keys: "job",
        is_due: "due IS NOT NULL",
        minutes: None,
    },
];

fn obligation(kind: RecordKind, row: &Row<'_>) -> Result<Obligation, UnreadableRow> {
    let reading = CellReader::new(row);
    let key = match kind {
        RecordKind::Run => RecordKey::Run(reading.parsed(RunId::parse)?),
        RecordKind::Action => RecordKey::Action(reading.parsed(ActionId::parse)?),
        RecordKind::Triggers => RecordKey::Triggers(reading.parsed(JobId::parse)?),
        _ => {
            let (job, schedule) = (reading.parsed(JobId::parse)?, reading.parsed(ScheduleId::parse)?);
            if kind == RecordKind::Cursor {
                RecordKey::Cursor(job, schedule)
            } else {
                RecordKey::Backlog(job, schedule)
            }
        }
    };
    Ok(Obligation { at: reading.instant()?, key })
}

/// The limit as SQLite takes it, which is signed.
pub(crate) fn bounded(limit: usize) -> Value {
    Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX))
}

#[cfg(test)]
pub(crate) mod testing {
    //! Query plans in a short form for comparison.

    use rusqlite::Connection;

    use crate::schema::STEPS;

    /// An empty database with all tables.
    pub(crate) fn schema() -> Connection {
        let connection = Connection::open_in_memory().expect("memory");
        STEPS.iter().for_each(|step| connection.execute_batch(step).expect("the schema"));
        connection
    }

    pub(crate) fn plan(connection: &Connection, sql: &str) -> String {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a valid query");
        // Unbound parameters are NULL, which is sufficient for a plan.
        let steps = statement.raw_query().mapped(|row| row.get::<_, String>(3));
        steps.map(|step| step.expect("a step")).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use cronhold_core::{Args, NodeId, State};

    use super::testing::{plan, schema};
    use super::*;

    /// The cost of a page depends only on its length, and nothing is sorted: every query uses a primary key or an
    /// index.
    #[test]
    fn lists_use_keys_and_indexes() {
        let connection = schema();
        let job = JobId::parse("a").expect("an id");
        let schedule = ScheduleId::parse("s").expect("an id");
        let run = RunId::from_random(Instant::EPOCH, [0; 10]);
        for (query, expected) in [
            (Query::Jobs { after: None }, "SCAN jobs"),
            (Query::Jobs { after: Some(job.clone()) }, "SEARCH jobs USING PRIMARY KEY (id>?)"),
            (
                Query::Cursors { after: Some((job.clone(), schedule)) },
                "SEARCH cursors USING PRIMARY KEY ((job,schedule)>(?,?))",
            ),
            (Query::PendingTriggers { after: None }, "SCAN triggers USING INDEX triggers_pending"),
            (Query::PendingActions { after: None }, "SCAN actions USING INDEX actions_pending"),
            (
                Query::PendingActions { after: Some(ActionId::new(run, 0)) },
                "SEARCH actions USING INDEX actions_pending (id>?)",
            ),
            (
                Query::Oldest { job, state: State::Success, after: Some(run) },
                "SEARCH runs USING INDEX runs_job (job=? AND id>?)",
            ),
            (
                Query::Identities { after: Some((JobId::parse("a").expect("an id"), Args::new())) },
                "SEARCH identities USING PRIMARY KEY ((job,args)>(?,?))",
            ),
            (Query::Unfinished { node: None, after: None }, "SCAN runs USING INDEX runs_open"),
            (
                Query::Unfinished { node: Some(NodeId::from_bits(1)), after: Some(run) },
                "SEARCH runs USING INDEX runs_open (id>?)",
            ),
        ] {
            assert_eq!(plan(&connection, &Listing::of(&query, 50).sql), expected, "{query:?}");
        }
        for (place, expected) in DUE.iter().zip([
            "SEARCH cursors USING INDEX cursors_wake (wake_minute>? AND wake_minute<?), USE TEMP B-TREE FOR ORDER BY",
            "SCAN backlogs, USE TEMP B-TREE FOR ORDER BY",
            "SCAN runs USING COVERING INDEX runs_open, USE TEMP B-TREE FOR ORDER BY",
        ]) {
            let (sql, _) = Listing::due(place, None, Instant::EPOCH);
            assert_eq!(plan(&connection, &sql), expected, "{}", place.table);
        }
    }
}

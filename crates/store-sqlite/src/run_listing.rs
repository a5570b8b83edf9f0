//! Lists of runs. They are the longest lists, and a filter may match few of millions of runs. So this file chooses the
//! index, instead of SQLite's planner, which has no statistics.

use cronhold_core::State;
use cronhold_schedule::Instant;
use cronhold_store::RunQuery;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::listing::{Listing, SqlCondition, bounded};
use crate::rows::RecordTable;

/// Up to this many ended runs, the index of the state is scanned for the runs of one job, which takes a few
/// milliseconds. Above it, the runs of the job are scanned for the state: then many of them have it, or the job keeps
/// few runs.
const RARE_MAX: usize = 20_000;

impl Listing {
    /// A list of runs, the latest id first.
    pub(crate) fn of_runs(query: &RunQuery, limit: usize, connection: &Connection) -> rusqlite::Result<Self> {
        if let Some(since) = query.since {
            return Ok(Self::of_runs_since(query, since, limit));
        }
        // Few runs share a number, whatever their states.
        if query.states.is_empty() || query.number.is_some() {
            return Ok(Self::of_all_states(query, limit));
        }
        let states = |is_open: bool| -> Vec<State> {
            State::ALL
                .into_iter()
                .filter(|state| query.states.contains(state) && state.is_finished() != is_open)
                .collect()
        };
        let (open, ended) = (states(true), states(false));
        let mut parts = RunListingSql::default();
        if !open.is_empty() {
            parts.add("runs_open", "open", query, &open, limit);
        }
        if query.job.is_none() || is_rare(query, &ended, connection)? {
            ended.iter().for_each(|state| parts.add("runs_ended", "NOT open", query, &[*state], limit));
        } else if !ended.is_empty() {
            parts.add("runs_job", "NOT open", query, &ended, limit);
        }
        Ok(parts.listing(limit))
    }

    /// Runs that were unfinished at `since` or later. The index finds the ended ones by when they ended.
    fn of_runs_since(query: &RunQuery, since: Instant, limit: usize) -> Self {
        let wanted = |is_open: bool| move |state: &State| state.is_finished() != is_open;
        let states = if query.states.is_empty() { &State::ALL } else { &query.states[..] };
        let open: Vec<State> = states.iter().copied().filter(wanted(true)).collect();
        let ended: Vec<State> = states.iter().copied().filter(wanted(false)).collect();
        let mut parts = RunListingSql::default();
        if !open.is_empty() {
            parts.add("runs_open", "open", query, &open, limit);
        }
        if !ended.is_empty() {
            let since_value = Value::Integer(since.micros());
            parts.add_with("runs_since", ("NOT open AND ended >= ?", Some(since_value)), query, &ended, limit);
            // Rows of earlier versions count by their nominal time, with which ids begin.
            let since_id = Value::Text(format!("{:012x}", since.millis().max(0)));
            let unknown_end = "NOT open AND ended IS NULL AND id >= ?";
            parts.add_with("runs_since", (unknown_end, Some(since_id)), query, &ended, limit);
        }
        parts.listing(limit)
    }

    fn of_all_states(query: &RunQuery, limit: usize) -> Self {
        let mut wanted = SqlCondition::default();
        wanted.runs(query);
        if !query.states.is_empty() {
            wanted.states(&query.states);
        }
        let sql = format!("{}{} ORDER BY id DESC LIMIT ?", RecordTable::Runs.layout().select(), wanted.clause());
        Self::new(RecordTable::Runs, sql, wanted, limit)
    }
}

/// Lists of ids, each from its own index, which the query merges.
#[derive(Debug, Default)]
struct RunListingSql {
    selects: Vec<String>,
    values: Vec<Value>,
}

impl RunListingSql {
    fn add(&mut self, index: &str, condition: &str, query: &RunQuery, states: &[State], limit: usize) {
        self.add_with(index, (condition, None), query, states, limit);
    }

    /// Adds a list with a condition and its parameter.
    fn add_with(
        &mut self,
        index: &str,
        (condition, parameter): (&str, Option<Value>),
        query: &RunQuery,
        states: &[State],
        limit: usize,
    ) {
        let mut wanted = SqlCondition::default();
        wanted.and(condition, parameter);
        wanted.runs(query);
        wanted.states(states);
        let clause = wanted.clause();
        let select = format!("SELECT id FROM runs INDEXED BY {index}{clause} ORDER BY id DESC LIMIT ?");
        self.selects.push(format!("SELECT id FROM ({select})"));
        self.values.extend(wanted.values);
        self.values.push(bounded(limit));
    }

    fn listing(self, limit: usize) -> Listing {
        let mut wanted = SqlCondition::default();
        wanted.and(&format!("id IN ({})", self.selects.join(" UNION ALL ")), self.values);
        let sql = format!("{}{} ORDER BY id DESC LIMIT ?", RecordTable::Runs.layout().select(), wanted.clause());
        Listing::new(RecordTable::Runs, sql, wanted, limit)
    }
}

impl SqlCondition {
    /// The conditions of a query except states.
    fn runs(&mut self, query: &RunQuery) {
        let RunQuery { job, number, .. } = query;
        job.iter().for_each(|job| self.text("job = ?", job.as_str()));
        if let Some(number) = number {
            self.and("number = ?", [Value::Integer(i64::try_from(number.0).unwrap_or(i64::MAX))]);
        }
        self.range(query);
    }

    /// The range of ids.
    fn range(&mut self, query: &RunQuery) {
        query.before.iter().for_each(|before| self.text("id < ?", &before.to_string()));
    }

    fn states(&mut self, states: &[State]) {
        let places = vec!["?"; states.len()].join(", ");
        self.and(&format!("state IN ({places})"), states.iter().map(|state| Value::Text(state.name().to_owned())));
    }
}

/// Whether few runs have ended in these states.
fn is_rare(query: &RunQuery, ended: &[State], connection: &Connection) -> rusqlite::Result<bool> {
    let mut found = 0;
    for state in ended {
        let mut wanted = SqlCondition::default();
        wanted.and("NOT open", []);
        wanted.states(&[*state]);
        wanted.range(query);
        wanted.values.push(bounded(RARE_MAX - found));
        let clause = wanted.clause();
        let sql = format!("SELECT count(*) FROM (SELECT 1 FROM runs INDEXED BY runs_ended{clause} LIMIT ?)");
        let count: usize = connection
            .prepare_cached(&sql)?
            .query_row(params_from_iter(wanted.values), |row| row.get::<_, i64>(0))?
            .try_into()
            .unwrap_or(RARE_MAX);
        found += count;
        if found >= RARE_MAX {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use cronhold_core::{JobId, RunId, RunNumber};

    use super::*;
    use crate::listing::testing::{plan, schema};

    /// The cost of a page depends only on its length, also if matching runs are rare.
    #[test]
    fn lists_of_runs_use_keys_and_indexes() {
        let connection = schema();
        let job = Some(JobId::parse("a").expect("an id"));
        let before = Some(RunId::from_random(Instant::EPOCH, [0; 10]));
        let since = Some(Instant::EPOCH);
        let states = vec![State::Error, State::Running, State::Failure];
        let all = RunQuery::default;
        for (query, expected) in [
            (all(), "SCAN runs USING INDEX sqlite_autoindex_runs_1"),
            (RunQuery { job: job.clone(), ..all() }, "SEARCH runs USING INDEX runs_job (job=?)"),
            (
                RunQuery { job: job.clone(), number: Some(RunNumber(3)), ..all() },
                "SEARCH runs USING INDEX runs_job (job=?)",
            ),
            (RunQuery { before, ..all() }, "SEARCH runs USING INDEX sqlite_autoindex_runs_1 (id<?)"),
            (
                RunQuery { since, before, ..all() },
                "SEARCH runs USING INDEX sqlite_autoindex_runs_1 (id=?), \
                 SEARCH runs USING COVERING INDEX runs_open (id<?), \
                 SEARCH runs USING COVERING INDEX runs_since (ended>?), \
                 SEARCH runs USING COVERING INDEX runs_since (ended=? AND id>? AND id<?)",
            ),
            (
                RunQuery { states: states.clone(), before, ..all() },
                "SEARCH runs USING INDEX sqlite_autoindex_runs_1 (id=?), \
                 SEARCH runs USING COVERING INDEX runs_open (id<?), \
                 SEARCH runs USING COVERING INDEX runs_ended (state=? AND id<?), \
                 SEARCH runs USING COVERING INDEX runs_ended (state=? AND id<?)",
            ),
            (
                RunQuery { job, states, ..all() },
                "SEARCH runs USING INDEX sqlite_autoindex_runs_1 (id=?), SCAN runs USING COVERING INDEX runs_open, \
                 SEARCH runs USING COVERING INDEX runs_ended (state=?), SEARCH runs USING COVERING INDEX runs_ended (state=?)",
            ),
        ] {
            let listing = Listing::of_runs(&query, 50, &connection).expect("a valid query");
            let plan = plan(&connection, &listing.sql);
            // Only what ran since a time is sorted.
            assert_eq!(plan.contains("TEMP B-TREE"), query.since.is_some(), "{query:?}: {plan}");
            let steps: Vec<&str> = plan.split(", ").filter(|step| step.contains(" runs ")).collect();
            assert_eq!(steps.join(", "), expected, "{query:?}");
        }
    }
}

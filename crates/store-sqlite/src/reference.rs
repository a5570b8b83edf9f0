//! The reference of the tables, for users who query them. It is generated from the schema.

use crate::schema::STEPS;

const BEFORE: &str = "\
# Tables of the SQLite store

<!-- Generated from the code by `./dev docs`. -->

The store is one SQLite file, by default `cronhold.db` in the data directory. You can query it with the `sqlite3` shell,
even while a daemon is running:

```sh
sqlite3 -readonly cronhold.db
```

Do not write to it: a daemon caches what it has read. Tables and columns can change between versions of Cronhold.
`PRAGMA user_version` returns the schema version of a file; a newer Cronhold migrates an older file when it starts. Copy
the store with `cronhold store backup FILE`, not with `cp`: the latest changes are in `cronhold.db-wal`.

## Useful queries

The ten latest runs of a job:

```sql
SELECT run, state, reason, nominal, started, finished FROM runs_view
WHERE job = 'reports/prices' ORDER BY id DESC LIMIT 10;
```

Failed runs of the last day:

```sql
SELECT run, state, reason, finished FROM runs_view
WHERE state IN ('failure', 'error') AND nominal > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 day');
```

Unfinished runs and their nodes:

```sql
SELECT run, state, started, due, nodes.name AS node FROM runs_view LEFT JOIN nodes ON nodes.id = runs_view.node
WHERE open ORDER BY runs_view.id;
```

Upcoming occurrences:

```sql
SELECT job, schedule, next FROM cursors_view WHERE next IS NOT NULL ORDER BY next LIMIT 20;
```

Skipped occurrences of each job, by reason:

```sql
SELECT job, reason, sum(coalesce(span_count, 1)) AS occurrences FROM runs
WHERE state = 'skipped' GROUP BY job, reason ORDER BY occurrences DESC;
```

The program of every job:

```sql
SELECT id, definition ->> 'program' AS program FROM jobs;
```

The output of a run:

```sql
SELECT CAST(bytes AS TEXT) FROM outputs WHERE run = '019d3736523b7d04aff61fb15cf2af56' ORDER BY at;
```

## Schema

```sql
";

/// The whole document.
pub fn document() -> String {
    format!("{BEFORE}{}```\n", STEPS.join("\n"))
}

/// Every query in the reference, so that a test can run them.
pub fn queries() -> Vec<String> {
    let (queries, _) = BEFORE.rsplit_once("## Schema").unwrap_or((BEFORE, ""));
    let blocks = queries.split("```sql\n").skip(1);
    blocks.filter_map(|block| block.split_once("```").map(|(query, _)| query.to_owned())).collect()
}

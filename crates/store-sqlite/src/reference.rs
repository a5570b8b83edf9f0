//! The document about the tables, for people who query them. It is made from the schema itself.

use crate::schema::STEPS;

const BEFORE: &str = "\
# Tables of the SQLite store

<!-- Generated from the code by `./dev docs`. -->

The store is one SQLite file, by default `cronhold.db` in the data directory. Everything in it can be read with the
`sqlite3` shell, also while a daemon runs:

```sh
sqlite3 -readonly cronhold.db
```

Do not write to it: a daemon remembers what it has read. Tables and columns can change between versions of Cronhold;
`PRAGMA user_version` says which version of the schema a file has, and a newer Cronhold updates an older file when it
starts. Make copies with `cronhold store backup FILE`, not with `cp`: the newest changes are in `cronhold.db-wal`.

## Useful queries

The ten latest runs of a job:

```sql
SELECT run, state, reason, nominal, started, finished FROM runs_view
WHERE job = 'reports/prices' ORDER BY id DESC LIMIT 10;
```

What failed in the last day:

```sql
SELECT run, state, reason, finished FROM runs_view
WHERE state IN ('failure', 'error') AND nominal > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 day');
```

What is on its way now, and on which node:

```sql
SELECT run, state, started, due, nodes.name AS node FROM runs_view LEFT JOIN nodes ON nodes.id = runs_view.node
WHERE open ORDER BY runs_view.id;
```

What comes next:

```sql
SELECT job, schedule, next FROM cursors_view WHERE next IS NOT NULL ORDER BY next LIMIT 20;
```

How often each job skipped, and why:

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

/// Every query of the document, so that a test can ask them.
pub fn queries() -> Vec<String> {
    let (queries, _) = BEFORE.rsplit_once("## Schema").unwrap_or((BEFORE, ""));
    let blocks = queries.split("```sql\n").skip(1);
    blocks.filter_map(|block| block.split_once("```").map(|(query, _)| query.to_owned())).collect()
}

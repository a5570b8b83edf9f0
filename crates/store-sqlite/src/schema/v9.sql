-- The pools that a run has joined, as JSON; null if it has joined none.
ALTER TABLE runs ADD COLUMN pools TEXT;

-- The active runs of pools. A pool without active runs has no row.
CREATE TABLE pools (
    name TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    active TEXT NOT NULL -- JSON
) STRICT, WITHOUT ROWID;

-- How many actions a run has caused.
ALTER TABLE runs ADD COLUMN actions INTEGER NOT NULL DEFAULT 0;

-- What transitions of runs owe to the outside. Rows are deleted with their runs.
CREATE TABLE actions (
    id TEXT NOT NULL PRIMARY KEY, -- the run and a number; the idempotency key
    version INTEGER NOT NULL,
    job TEXT NOT NULL,
    event TEXT NOT NULL, -- the state that the run entered, or finished
    kind TEXT NOT NULL, -- run, webhook, email or command
    status TEXT NOT NULL, -- pending, done or failed
    due INTEGER, -- when it is tried next; null if it is done or given up
    node TEXT, -- the node that tries it now, and its incarnation
    incarnation INTEGER,
    ended INTEGER, -- when it was delivered or given up
    created INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    error TEXT, -- why the last failed attempt failed
    work TEXT NOT NULL -- JSON
) STRICT, WITHOUT ROWID;

CREATE INDEX actions_due ON actions (due, id) WHERE due IS NOT NULL;
CREATE INDEX actions_pending ON actions (id) WHERE due IS NOT NULL;

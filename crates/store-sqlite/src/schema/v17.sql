-- Why the store is sealed: at most one row. A sealed store refuses changes, except heartbeats.
CREATE TABLE seal (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    reason TEXT NOT NULL
) STRICT;

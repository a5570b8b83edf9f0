-- Times are microseconds since 1970-01-01T00:00:00Z, because integers can be compared, subtracted and indexed directly;
-- spans are microseconds too. The views show them as text. Ids of runs and nodes and uids of jobs are 32 hex digits.
-- `version` identifies the unit that wrote a row last: writer number * 2^40 + unit number.

CREATE TABLE meta (
    name TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The global pause: at most one row.
CREATE TABLE pause (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL,
    since INTEGER,
    "by" TEXT,
    why TEXT,
    last_from INTEGER,
    last_to INTEGER
) STRICT;

CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    uid TEXT NOT NULL,
    revision INTEGER NOT NULL,
    source TEXT NOT NULL,
    zone TEXT NOT NULL,
    definition TEXT NOT NULL -- JSON, in the keys of a job file
) STRICT, WITHOUT ROWID;

CREATE TABLE job_states (
    job TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    next_number INTEGER NOT NULL,
    active TEXT NOT NULL, -- JSON
    queue TEXT NOT NULL, -- JSON
    paused_since INTEGER,
    paused_by TEXT,
    paused_why TEXT,
    last_paused_from INTEGER,
    last_paused_to INTEGER,
    kept_success INTEGER NOT NULL,
    kept_failure INTEGER NOT NULL,
    kept_error INTEGER NOT NULL,
    kept_skipped INTEGER NOT NULL,
    floor INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE cursors (
    job TEXT NOT NULL,
    schedule TEXT NOT NULL,
    version INTEGER NOT NULL,
    since INTEGER NOT NULL,
    last INTEGER,
    next INTEGER,
    wake INTEGER,
    revision INTEGER NOT NULL,
    zones TEXT NOT NULL,
    generation INTEGER NOT NULL,
    follows TEXT,
    at_start INTEGER NOT NULL,
    skip_reason TEXT,
    skip_count INTEGER,
    skip_span TEXT,
    PRIMARY KEY (job, schedule)
) STRICT, WITHOUT ROWID;

CREATE INDEX cursors_wake ON cursors (wake) WHERE wake IS NOT NULL;

CREATE TABLE backlogs (
    job TEXT NOT NULL,
    schedule TEXT NOT NULL,
    version INTEGER NOT NULL,
    first INTEGER NOT NULL,
    position INTEGER NOT NULL,
    last INTEGER NOT NULL,
    count INTEGER NOT NULL,
    due INTEGER NOT NULL,
    later TEXT NOT NULL, -- JSON
    PRIMARY KEY (job, schedule)
) STRICT, WITHOUT ROWID;

CREATE TABLE identities (
    job TEXT NOT NULL,
    args TEXT NOT NULL, -- JSON
    version INTEGER NOT NULL,
    success_run TEXT,
    success_at INTEGER,
    failure_run TEXT,
    failure_at INTEGER,
    error_run TEXT,
    error_at INTEGER,
    skipped_run TEXT,
    skipped_at INTEGER,
    PRIMARY KEY (job, args)
) STRICT, WITHOUT ROWID;

-- Rows are in insertion order, so that runs that are written together share pages. The ids of one instant are in random
-- order: a table sorted by id would write a page for each run, twice.
CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY, -- begins with the nominal time, so that its index is in that order
    version INTEGER NOT NULL,
    job TEXT NOT NULL,
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    open INTEGER NOT NULL, -- 1 until it has ended
    reason TEXT,
    nominal INTEGER NOT NULL,
    due INTEGER,
    attempt INTEGER NOT NULL,
    schedule TEXT,
    args TEXT NOT NULL, -- JSON
    uid TEXT NOT NULL,
    retry_of TEXT,
    retried_by TEXT,
    rerun_of TEXT,
    node TEXT,
    incarnation INTEGER,
    work TEXT, -- JSON
    lock TEXT,
    timeout INTEGER,
    stop_at INTEGER,
    stop_signal TEXT NOT NULL,
    stop_grace INTEGER NOT NULL,
    ending TEXT,
    exit_code INTEGER,
    exit_signal TEXT,
    output_bytes INTEGER, -- what its program wrote in all, whether it is still kept or not
    tail TEXT, -- JSON: the last lines of it
    span_from INTEGER,
    span_to INTEGER,
    span_count INTEGER,
    log TEXT NOT NULL -- JSON: every state it entered
) STRICT;

CREATE INDEX runs_job ON runs (job, id);
CREATE INDEX runs_open ON runs (id, due, node, open) WHERE open;

-- A free lock keeps its row, so that its fence only grows.
CREATE TABLE locks (
    name TEXT NOT NULL PRIMARY KEY,
    fence INTEGER NOT NULL,
    holder TEXT,
    version INTEGER,
    ttl INTEGER,
    until INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE nodes (
    id TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    since INTEGER NOT NULL,
    beat INTEGER NOT NULL,
    labels TEXT NOT NULL, -- JSON
    draining INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Outputs in pieces: `bytes` starts at byte `at` of the run's output.
CREATE TABLE outputs (
    run TEXT NOT NULL,
    at INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (run, at)
) STRICT;

CREATE VIEW runs_view AS
SELECT job || '#' || number AS run,
    job,
    number,
    state,
    reason,
    strftime('%Y-%m-%dT%H:%M:%fZ', nominal / 1000000.0, 'unixepoch') AS nominal,
    (SELECT entry.value ->> 'at' FROM json_each(log) AS entry
        WHERE entry.value ->> 'state' = 'starting' ORDER BY entry.key DESC LIMIT 1) AS started,
    CASE WHEN open THEN NULL ELSE log ->> '$[#-1].at' END AS finished,
    strftime('%Y-%m-%dT%H:%M:%fZ', due / 1000000.0, 'unixepoch') AS due,
    attempt,
    args,
    exit_code,
    exit_signal,
    output_bytes,
    node,
    open,
    id
FROM runs;

CREATE VIEW cursors_view AS
SELECT job,
    schedule,
    strftime('%Y-%m-%dT%H:%M:%fZ', last / 1000000.0, 'unixepoch') AS last,
    strftime('%Y-%m-%dT%H:%M:%fZ', next / 1000000.0, 'unixepoch') AS next,
    strftime('%Y-%m-%dT%H:%M:%fZ', wake / 1000000.0, 'unixepoch') AS wake,
    zones,
    follows
FROM cursors;

INSERT INTO meta (name, value) VALUES ('writers', 0), ('beats', 0);

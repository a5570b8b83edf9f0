-- Tasks: durable units of work. Times are microseconds since 1970.
CREATE TABLE tasks (
    id INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    class TEXT NOT NULL,
    args TEXT, -- a JSON list
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    ran_at INTEGER, -- when the latest step began
    parent INTEGER,
    child_name TEXT,
    entry INTEGER, -- the place in the queue; null if the task does not wait there
    run_at INTEGER, -- when the task gets a place in the queue
    step TEXT, -- the step that holds the task
    lease_until INTEGER, -- when that step is lost
    last_step TEXT, -- the last step that was committed
    lost_steps INTEGER NOT NULL,
    refused_steps INTEGER NOT NULL,
    rate_minute INTEGER NOT NULL, -- the minute of the latest step
    rate_count INTEGER NOT NULL -- steps in that minute
) STRICT;
CREATE UNIQUE INDEX tasks_by_parent ON tasks (parent, child_name) WHERE parent IS NOT NULL;
CREATE INDEX tasks_ready ON tasks (queue, class, entry) WHERE entry IS NOT NULL AND step IS NULL;
CREATE INDEX tasks_due ON tasks (run_at) WHERE run_at IS NOT NULL;
CREATE INDEX tasks_leased ON tasks (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX tasks_by_status ON tasks (status, id);
CREATE INDEX tasks_by_queue ON tasks (queue, id);
CREATE INDEX tasks_by_queue_and_status ON tasks (queue, status, id);

CREATE TABLE task_aliases (
    alias TEXT PRIMARY KEY,
    task INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX task_aliases_by_task ON task_aliases (task, alias);

CREATE TABLE task_state (
    task INTEGER NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL, -- JSON
    PRIMARY KEY (task, field)
) STRICT, WITHOUT ROWID;

-- The ports of tasks; `*` is the template of ports that are created when they are first used.
CREATE TABLE task_ports (
    task INTEGER NOT NULL,
    direction TEXT NOT NULL, -- in or out
    port TEXT NOT NULL,
    default_item TEXT, -- an item, as in `task_items`
    channels TEXT NOT NULL, -- a JSON list
    first INTEGER NOT NULL, -- the position of the first item
    next INTEGER NOT NULL, -- the position of the next item that is written
    PRIMARY KEY (task, direction, port)
) STRICT, WITHOUT ROWID;

CREATE TABLE task_items (
    task INTEGER NOT NULL,
    direction TEXT NOT NULL,
    port TEXT NOT NULL,
    position INTEGER NOT NULL,
    item TEXT NOT NULL, -- JSON: data, and perhaps context and options
    PRIMARY KEY (task, direction, port, position)
) STRICT, WITHOUT ROWID;

-- The in ports that receive the messages of a channel.
CREATE TABLE task_channels (
    channel TEXT NOT NULL,
    task INTEGER NOT NULL,
    port TEXT NOT NULL,
    PRIMARY KEY (channel, task, port)
) STRICT, WITHOUT ROWID;

-- The classes that workers have registered.
CREATE TABLE task_classes (
    queue TEXT NOT NULL,
    class TEXT NOT NULL,
    config TEXT NOT NULL, -- JSON
    PRIMARY KEY (queue, class)
) STRICT, WITHOUT ROWID;

-- Requests that take effect once.
CREATE TABLE task_requests (
    key TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    created TEXT NOT NULL -- the ids of the tasks that the request created, a JSON list
) STRICT, WITHOUT ROWID;
CREATE INDEX task_requests_by_expiry ON task_requests (expires_at);

CREATE TABLE task_processes (
    id TEXT PRIMARY KEY,
    queue TEXT NOT NULL,
    classes TEXT NOT NULL, -- a JSON list
    concurrency INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL, -- the last heartbeat
    busy INTEGER NOT NULL, -- steps that it makes
    quiet INTEGER NOT NULL, -- 1 if it begins no further steps
    signals TEXT NOT NULL -- signals that it has not received yet, a JSON list
) STRICT, WITHOUT ROWID;

CREATE TABLE task_counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO task_counters (name, value) VALUES ('task', 0), ('entry', 0), ('processed', 0), ('failed', 0);

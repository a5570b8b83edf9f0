-- The triggers that a run stands for, as JSON; null if no trigger created it.
ALTER TABLE runs ADD COLUMN triggers TEXT;

-- Whether triggers of the job are pending.
ALTER TABLE job_states ADD COLUMN has_triggers INTEGER NOT NULL DEFAULT 0;

-- Triggers of jobs with a batching policy, and what was decided about them.
CREATE TABLE triggers (
    job TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    due INTEGER, -- when they are decided about at the latest; null if none is pending
    received INTEGER NOT NULL,
    consumed INTEGER NOT NULL, -- triggers that runs stand for
    expired INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    pending TEXT NOT NULL, -- JSON, the oldest first
    decisions TEXT NOT NULL -- JSON, the latest last
) STRICT, WITHOUT ROWID;

CREATE INDEX triggers_due ON triggers (due, job) WHERE due IS NOT NULL;
CREATE INDEX triggers_pending ON triggers (job) WHERE due IS NOT NULL;

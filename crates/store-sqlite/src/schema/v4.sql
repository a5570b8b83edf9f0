-- When the job was removed, after which its state expires.
ALTER TABLE job_states ADD COLUMN removed INTEGER;
-- When an ended run ended, for lists of what ran since some time; null in rows that were written before this column.
ALTER TABLE runs ADD COLUMN ended INTEGER;
CREATE INDEX runs_since ON runs (ended, id, job, state, open) WHERE NOT open;

-- The ended run of a job that started last, and when it did.
ALTER TABLE job_states ADD COLUMN latest_run TEXT;
ALTER TABLE job_states ADD COLUMN latest_at INTEGER;
-- Which occurrences were claimed, as ranges of times in microseconds. They outlive the runs.
ALTER TABLE cursors ADD COLUMN claimed TEXT NOT NULL DEFAULT '';

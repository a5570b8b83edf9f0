-- When a node counts as gone, unless it is heard of before.
ALTER TABLE nodes ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;

-- Lists of runs. A run is found by its job and number without its row being read; runs that have ended are found by
-- their state, also where there are few of them among many; and those that have not ended by all that is asked of them.
DROP INDEX runs_job;
CREATE INDEX runs_job ON runs (job, id, number);
DROP INDEX runs_open;
CREATE INDEX runs_open ON runs (id, due, node, job, state, open) WHERE open;
CREATE INDEX runs_ended ON runs (state, id, job, open) WHERE NOT open;

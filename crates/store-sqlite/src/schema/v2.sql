-- When a node counts as gone unless it sends another heartbeat.
ALTER TABLE nodes ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;

-- Lists of runs. A run is found by job and number without reading its row; ended runs are found by their state, even if
-- few of many runs have it; unfinished runs are found by every column that queries filter by.
DROP INDEX runs_job;
CREATE INDEX runs_job ON runs (job, id, number);
DROP INDEX runs_open;
CREATE INDEX runs_open ON runs (id, due, node, job, state, open) WHERE open;
CREATE INDEX runs_ended ON runs (state, id, job, open) WHERE NOT open;

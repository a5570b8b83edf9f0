-- The latest outcomes of runs without args, as JSON; null in rows that were written before this column, whose outcomes
-- are in the table of identities.
ALTER TABLE job_states ADD COLUMN outcomes TEXT;

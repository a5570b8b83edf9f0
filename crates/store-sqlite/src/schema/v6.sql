-- The minute in which the next occurrence is due. Searching for what is overdue needs no more, and an index on the exact
-- time would change with every claim of a job that runs often.
ALTER TABLE cursors ADD COLUMN wake_minute INTEGER;
UPDATE cursors SET wake_minute = wake / 60000000;
DROP INDEX cursors_wake;
CREATE INDEX cursors_wake ON cursors (wake_minute) WHERE wake_minute IS NOT NULL;

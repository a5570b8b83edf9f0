-- When the run is late if it has not finished; null if its job does not say, and after it was noticed.
ALTER TABLE runs ADD COLUMN late_at INTEGER;
-- In a row with `late_at`, when the run has to be checked for any other reason. Then `due` is the earlier of both.
ALTER TABLE runs ADD COLUMN check_at INTEGER;
-- How the latest outcomes follow each other, as JSON; null before the first one.
ALTER TABLE identities ADD COLUMN streak TEXT;

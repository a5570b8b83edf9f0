-- What a waiting run waits for, as JSON; null for other runs.
ALTER TABLE runs ADD COLUMN blockers TEXT;

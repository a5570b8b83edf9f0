-- When a pause ends by itself; null if only a resume ends it.
ALTER TABLE pause ADD COLUMN until INTEGER;
ALTER TABLE job_states ADD COLUMN paused_until INTEGER;

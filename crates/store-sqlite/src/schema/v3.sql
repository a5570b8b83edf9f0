-- Runs on several nodes: how long a program may run without a heartbeat of its node, and the only node allowed to start
-- it.
ALTER TABLE runs ADD COLUMN lease INTEGER;
ALTER TABLE runs ADD COLUMN target TEXT;

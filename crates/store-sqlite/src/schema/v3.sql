-- Runs on many nodes: how long a program may live without its node being heard of, and the only node that may start it.
ALTER TABLE runs ADD COLUMN lease INTEGER;
ALTER TABLE runs ADD COLUMN target TEXT;

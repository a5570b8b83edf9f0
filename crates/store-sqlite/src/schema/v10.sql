-- What a waiting run asks the outside, as JSON; null if it asks nothing.
ALTER TABLE runs ADD COLUMN probes TEXT;

-- Which parts of the output are standard error, as JSON; null if the streams were not told apart.
ALTER TABLE runs ADD COLUMN stderr TEXT;

-- The size of all outputs together, in bytes: one row, which triggers keep up to date.
CREATE TABLE output_total (
    bytes INTEGER NOT NULL
) STRICT;
INSERT INTO output_total (bytes) SELECT coalesce(sum(length(bytes)), 0) FROM outputs;
CREATE TRIGGER outputs_added AFTER INSERT ON outputs BEGIN
    UPDATE output_total SET bytes = bytes + length(NEW.bytes);
END;
CREATE TRIGGER outputs_deleted AFTER DELETE ON outputs BEGIN
    UPDATE output_total SET bytes = bytes - length(OLD.bytes);
END;

-- The job from which this one takes over the history, or the one that takes over its history; null except during a rename.
ALTER TABLE job_states ADD COLUMN renaming TEXT; -- JSON

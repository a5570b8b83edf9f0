-- What is known of the service that the program of a run uses, as JSON: its response.
ALTER TABLE runs ADD COLUMN service TEXT;

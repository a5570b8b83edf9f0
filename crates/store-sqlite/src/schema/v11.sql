-- What is known of the service that the program of a run uses, as JSON: its task, the requests about it, and its response.
ALTER TABLE runs ADD COLUMN service TEXT;

-- The run that a run does again.
ALTER TABLE runs ADD COLUMN retry_of_run_uid uuid REFERENCES runs (uid);

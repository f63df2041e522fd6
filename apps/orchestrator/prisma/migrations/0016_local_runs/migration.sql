-- Executed by its client, not by a worker: it uses no capacity, and its lease names the client instead of a worker's session.
ALTER TABLE executions ADD COLUMN is_local boolean NOT NULL DEFAULT false;

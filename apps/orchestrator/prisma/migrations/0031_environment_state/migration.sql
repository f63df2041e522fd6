-- Runs in an environment, or in none, with their state: as with every other filter.
CREATE INDEX IF NOT EXISTS runs_by_environment_state ON runs (owner_uid, environment_uid, state);
DROP INDEX runs_without_environment;

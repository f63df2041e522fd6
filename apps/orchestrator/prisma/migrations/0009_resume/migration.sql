-- A lost attempt that had started its agent is gone on from: what it wrote stays part of the run's story, and the newest
-- checkpoint of the workspace is where the next attempt begins.
ALTER TABLE executions
  ADD COLUMN kept_attempts  integer[] NOT NULL DEFAULT '{}', -- lost attempts whose events count, though a newer one was accepted
  ADD COLUMN checkpoint_key text;                            -- workspace saved between steps, newest
CREATE INDEX snapshots_by_execution ON snapshots (execution_id);

-- A worker keeps the workspace of an execution that has ended for a while, and is the better one for the run's next execution.
ALTER TABLE executions
  ADD COLUMN parked_session_uid uuid,             -- who keeps it
  ADD COLUMN parked_until timestamptz(3),
  ADD COLUMN preferred_session_uid uuid,          -- of a queued one: who keeps the workspace that it goes on with
  ADD COLUMN preferred_until timestamptz(3);      -- others leave it to that worker until then, if it could take it

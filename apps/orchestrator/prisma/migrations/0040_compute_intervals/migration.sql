-- The time that an attempt used a sandbox, and its shape (0 = not limited). Inserted when the attempt ends, never changed.
CREATE TABLE compute_intervals (
  run_uid      uuid             NOT NULL,
  execution_id bigint           NOT NULL,
  attempt      integer          NOT NULL,
  started_at   timestamptz(3)   NOT NULL,
  ended_at     timestamptz(3)   NOT NULL,
  vcpus        double precision NOT NULL,
  memory_gb    double precision NOT NULL,
  PRIMARY KEY (run_uid, execution_id, attempt),
  CONSTRAINT compute_intervals_order CHECK (ended_at >= started_at)
);
-- The limits that the worker reports for the sandbox of the current attempt; null: not reported.
ALTER TABLE executions ADD COLUMN sandbox_vcpus double precision, ADD COLUMN sandbox_memory_gb double precision;
-- Whether a person sent the message, and not a run or a service in that person's name. Null: not recorded.
ALTER TABLE messages ADD COLUMN by_person boolean;
-- Size of a local repository's pull request, from its merge base to its head. Null: not known here.
ALTER TABLE pull_requests
  ADD COLUMN additions integer,
  ADD COLUMN deletions integer,
  ADD COLUMN changed_files integer,
  ADD COLUMN num_commits integer;

-- What model calls under way may cost at most, for runs with a cost limit: an execution makes one call at a time.
CREATE TABLE cost_reservations (
  execution_id bigint         PRIMARY KEY,
  run_uid      uuid           NOT NULL,
  attempt      integer        NOT NULL,
  micros       bigint         NOT NULL,
  reserved_at  timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX cost_reservations_by_run ON cost_reservations (run_uid);

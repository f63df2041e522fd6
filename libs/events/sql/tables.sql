-- Tables of libs/events, which the migrations of each service create.
CREATE SCHEMA IF NOT EXISTS stream;

-- Events written in the transaction of the change that they report. `seq` is the order of insertion: within one entity,
-- whose row the writer has locked, it is also the order of commits. Between entities it is not, so this table is never
-- read by position.
CREATE TABLE stream.event_pending (
  seq            bigint         GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uid            uuid           NOT NULL,
  type           text           NOT NULL,
  entity         text           NOT NULL,
  entity_uid     text           NOT NULL,
  entity_version bigint         NOT NULL,
  team_uid       uuid,
  actor_type     text           NOT NULL,
  actor_uid      text           NOT NULL,
  request_id     text           NOT NULL,
  cause          text,
  traceparent    text,          -- W3C trace context of the operation that caused the event
  occurred_at    timestamptz(3) NOT NULL,
  payload        jsonb          NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The log: insert-only and gapless. No later commit adds an event before one that was already readable. The sequencer
-- adds partitions.
CREATE TABLE stream.event_log (
  position       bigint         PRIMARY KEY,
  uid            uuid           NOT NULL,
  type           text           NOT NULL,
  entity         text           NOT NULL,
  entity_uid     text           NOT NULL,
  entity_version bigint         NOT NULL,
  team_uid       uuid,
  actor_type     text           NOT NULL,
  actor_uid      text           NOT NULL,
  request_id     text           NOT NULL,
  cause          text,
  traceparent    text,
  occurred_at    timestamptz(3) NOT NULL,
  logged_at      timestamptz(3) NOT NULL,
  payload        jsonb          NOT NULL
) PARTITION BY RANGE (position);
CREATE TABLE stream.event_log_1 PARTITION OF stream.event_log FOR VALUES FROM (1) TO (1000001);

-- One row. `log_uid` identifies this log permanently; `partitioned_to` is the last position that has a partition.
CREATE TABLE stream.event_meta (
  only_row       boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  log_uid        uuid    NOT NULL DEFAULT gen_random_uuid(),
  head           bigint  NOT NULL DEFAULT 0,
  partitioned_to bigint  NOT NULL DEFAULT 1000000
);
INSERT INTO stream.event_meta DEFAULT VALUES;

-- How far this service has applied the log of a source. Updated in the transaction of the effects.
CREATE TABLE stream.feed_cursors (
  reader         text           NOT NULL,
  source         text           NOT NULL,
  log_uid        uuid,
  position       bigint         NOT NULL DEFAULT 0,
  stopped_reason text,          -- set: the consumer has stopped until an operator decides where it continues
  updated_at     timestamptz(3) NOT NULL DEFAULT now(),
  replay_requested_at timestamptz(3), -- set: an operator requested that the dead-lettered events are applied again
  PRIMARY KEY (reader, source)
);

-- Events that could not be applied, and the later ones of the same entity, in order.
CREATE TABLE stream.dead_lettered_events (
  reader           text           NOT NULL,
  source           text           NOT NULL,
  position         bigint         NOT NULL,
  entity           text           NOT NULL,
  entity_uid       text           NOT NULL,
  event            jsonb          NOT NULL,
  reason           text           NOT NULL,
  attempts         integer        NOT NULL DEFAULT 0,
  dead_lettered_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (reader, source, position)
);
CREATE INDEX dead_lettered_events_by_entity ON stream.dead_lettered_events (reader, source, entity, entity_uid);

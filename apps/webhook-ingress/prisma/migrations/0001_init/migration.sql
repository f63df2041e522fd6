-- Webhooks and what was delivered to them. Meaning of the columns: ../../schema.prisma.

CREATE TABLE webhooks (
  uid                uuid           PRIMARY KEY,
  team_uid           uuid           NOT NULL,
  factory_uid        uuid           NOT NULL,
  name               text           NOT NULL CONSTRAINT webhooks_name CHECK (name <> ''),
  auth_mode          text           NOT NULL CONSTRAINT webhooks_auth_mode CHECK (auth_mode IN ('token', 'url_token', 'signature')),
  signature_scheme   text,
  signature_header   text,
  signature_prefix   text,
  secret_name        text,
  secret_sealed      text,
  delivery_id_header text,
  enabled            boolean        NOT NULL,
  management         text           NOT NULL DEFAULT 'live' CONSTRAINT webhooks_management CHECK (management IN ('live', 'files')),
  version            integer        NOT NULL DEFAULT 1,
  created_at         timestamptz(3) NOT NULL,
  updated_at         timestamptz(3) NOT NULL,
  deleted_at         timestamptz(3),
  CONSTRAINT webhooks_scheme CHECK ((auth_mode = 'signature') = (signature_scheme IS NOT NULL)),
  CONSTRAINT webhooks_secret CHECK (num_nonnulls(secret_name, secret_sealed) <= 1)
);
-- The webhooks of a factory, oldest first.
CREATE INDEX webhooks_by_factory ON webhooks (factory_uid, created_at, uid) WHERE deleted_at IS NULL;
-- A file defines one webhook of its factory.
CREATE UNIQUE INDEX webhooks_file ON webhooks (factory_uid, name) WHERE deleted_at IS NULL AND management = 'files';
-- Is a managed secret named by any?
CREATE INDEX webhooks_by_secret ON webhooks (team_uid, secret_name) WHERE deleted_at IS NULL AND secret_name IS NOT NULL;

CREATE TABLE team_secrets (
  team_uid  uuid           NOT NULL,
  name      text           NOT NULL,
  sealed    text,
  revision  text           NOT NULL COLLATE "C",
  pushed_at timestamptz(3),
  PRIMARY KEY (team_uid, name)
);
-- Values that the gateway pushed and may not have kept.
CREATE INDEX team_secrets_unconfirmed ON team_secrets (pushed_at) WHERE pushed_at IS NOT NULL;

CREATE TABLE deliveries (
  uid           uuid           PRIMARY KEY,
  webhook_uid   uuid           NOT NULL,
  team_uid      uuid           NOT NULL,
  factory_uid   uuid           NOT NULL,
  outcome       text           NOT NULL CONSTRAINT deliveries_outcome CHECK (outcome IN ('accepted', 'duplicate', 'rejected_auth', 'rejected_invalid_json', 'rejected_too_large')),
  identity_kind text,
  delivery_id   text,
  size_bytes    bigint         NOT NULL,
  received_at   timestamptz(3) NOT NULL,
  payload       bytea,
  CONSTRAINT deliveries_identified CHECK (outcome NOT IN ('accepted', 'duplicate') OR (identity_kind IS NOT NULL AND delivery_id IS NOT NULL)),
  CONSTRAINT deliveries_payload CHECK ((outcome = 'accepted') = (payload IS NOT NULL))
);
-- One identity is accepted once. Rejected attempts and duplicates claim nothing.
CREATE UNIQUE INDEX deliveries_identity ON deliveries (webhook_uid, identity_kind, delivery_id) WHERE outcome = 'accepted';
-- A webhook's log, newest first; and what of it is old.
CREATE INDEX deliveries_log ON deliveries (webhook_uid, received_at DESC, uid DESC);

-- Counts of the last minute. Nothing is lost with them but a minute's memory: they are not written ahead.
CREATE UNLOGGED TABLE rate_windows (
  webhook_uid uuid             NOT NULL,
  bucket      text             NOT NULL,
  hits        timestamptz(3)[] NOT NULL,
  PRIMARY KEY (webhook_uid, bucket)
) WITH (fillfactor = 50);

CREATE TABLE idempotency_keys (
  principal_uid text           NOT NULL,
  operation     text           NOT NULL,
  key           text           NOT NULL,
  body_hash     char(64)       NOT NULL,
  answer        text           NOT NULL,
  created_at    timestamptz(3) NOT NULL,
  PRIMARY KEY (principal_uid, operation, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- Tables of libs/events, as every service's migrations leave them; the first migration of a new service contains this text.
CREATE SCHEMA IF NOT EXISTS stream;

-- Written in the transaction of a change. `seq` is the order of insertion: within one entity, whose row its writer
-- holds locked, also the order of commits; between entities it is not, so nobody reads this table by position.
CREATE TABLE stream.event_pending (
  seq            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uid            uuid NOT NULL,
  type           text NOT NULL,
  entity         text NOT NULL,
  entity_uid     text NOT NULL,
  entity_version bigint NOT NULL,
  team_uid       uuid,
  actor_type     text NOT NULL,
  actor_uid      text NOT NULL,
  request_id     text NOT NULL,
  cause          text,
  traceparent    text, -- W3C trace context of what brought it about
  occurred_at    timestamptz(3) NOT NULL,
  payload        jsonb NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The log: insert-only, gapless, in an order that no later commit slips behind. The sequencer adds partitions.
CREATE TABLE stream.event_log (
  position       bigint PRIMARY KEY,
  uid            uuid NOT NULL,
  type           text NOT NULL,
  entity         text NOT NULL,
  entity_uid     text NOT NULL,
  entity_version bigint NOT NULL,
  team_uid       uuid,
  actor_type     text NOT NULL,
  actor_uid      text NOT NULL,
  request_id     text NOT NULL,
  cause          text,
  traceparent    text,
  occurred_at    timestamptz(3) NOT NULL,
  logged_at      timestamptz(3) NOT NULL,
  payload        jsonb NOT NULL
) PARTITION BY RANGE (position);
CREATE TABLE stream.event_log_1 PARTITION OF stream.event_log FOR VALUES FROM (1) TO (1000001);

-- One row. `log_uid` names this log for good; `partitioned_to` is the last position that has a partition.
CREATE TABLE stream.event_meta (
  only_row       boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  log_uid        uuid NOT NULL DEFAULT gen_random_uuid(),
  head           bigint NOT NULL DEFAULT 0,
  partitioned_to bigint NOT NULL DEFAULT 1000000
);
INSERT INTO stream.event_meta DEFAULT VALUES;

-- How far this service has applied the log of a source; moved in the transaction of the effects.
CREATE TABLE stream.feed_cursors (
  reader        text NOT NULL,
  source        text NOT NULL,
  log_uid       uuid,
  position      bigint NOT NULL DEFAULT 0,
  parked_reason text, -- set: nothing is read until someone decides where to go on
  updated_at    timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (reader, source)
);

-- Events that could not be applied, and the later ones of the same entity, in order.
CREATE TABLE stream.parked_events (
  reader     text NOT NULL,
  source     text NOT NULL,
  position   bigint NOT NULL,
  entity     text NOT NULL,
  entity_uid text NOT NULL,
  event      jsonb NOT NULL,
  reason     text NOT NULL,
  tries      integer NOT NULL DEFAULT 0,
  parked_at  timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (reader, source, position)
);
CREATE INDEX parked_events_by_entity ON stream.parked_events (reader, source, entity, entity_uid);

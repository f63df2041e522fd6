-- Webhooks and their deliveries, of factories and of code-host connections. The columns are explained in
-- ../../schema.prisma.

CREATE TABLE webhooks (
  uid                  uuid           PRIMARY KEY,
  team_uid             uuid           NOT NULL,
  factory_uid          uuid           NOT NULL,
  name                 text           NOT NULL CONSTRAINT webhooks_name CHECK (name <> ''),
  auth_mode            text           NOT NULL
    CONSTRAINT webhooks_auth_mode CHECK (auth_mode IN ('token', 'url_token', 'signature')),
  signature_scheme     text,
  signature_header     text,
  signature_prefix     text,
  secret_name          text,
  secret_sealed        text,
  delivery_id_header   text,
  enabled              boolean        NOT NULL,
  management           text           NOT NULL DEFAULT 'live'
    CONSTRAINT webhooks_management CHECK (management IN ('live', 'files')),
  projected_definition jsonb,
  version              integer        NOT NULL DEFAULT 1,
  created_at           timestamptz(3) NOT NULL,
  updated_at           timestamptz(3) NOT NULL,
  deleted_at           timestamptz(3),
  CONSTRAINT webhooks_scheme CHECK ((auth_mode = 'signature') = (signature_scheme IS NOT NULL)),
  CONSTRAINT webhooks_secret CHECK (num_nonnulls(secret_name, secret_sealed) <= 1)
);
-- The webhooks of a factory, oldest first.
CREATE INDEX webhooks_by_factory ON webhooks (factory_uid, created_at, uid)
  WHERE deleted_at IS NULL;
-- A file defines one webhook of its factory.
CREATE UNIQUE INDEX webhooks_file ON webhooks (factory_uid, name)
  WHERE deleted_at IS NULL AND management = 'files';
-- The webhooks that use a managed secret.
CREATE INDEX webhooks_by_secret ON webhooks (team_uid, secret_name)
  WHERE deleted_at IS NULL AND secret_name IS NOT NULL;

CREATE TABLE team_secrets (
  team_uid          uuid           NOT NULL,
  name              text           NOT NULL,
  sealed            text,
  revision          text           NOT NULL COLLATE "C",
  unconfirmed_since timestamptz(3),
  PRIMARY KEY (team_uid, name)
);
-- Values that the gateway sent and may have failed to store.
CREATE INDEX team_secrets_unconfirmed ON team_secrets (unconfirmed_since)
  WHERE unconfirmed_since IS NOT NULL;

CREATE TABLE deliveries (
  uid         uuid           PRIMARY KEY,
  webhook_uid uuid           NOT NULL,
  team_uid    uuid           NOT NULL,
  factory_uid uuid           NOT NULL,
  outcome     text           NOT NULL
    CONSTRAINT deliveries_outcome
    CHECK (outcome IN ('accepted', 'duplicate', 'rejected_auth', 'rejected_invalid_json', 'rejected_too_large')),
  dedupe_kind text,
  dedupe_key  text,
  size_bytes  bigint         NOT NULL,
  received_at timestamptz(3) NOT NULL,
  payload     bytea,
  CONSTRAINT deliveries_identified
    CHECK (outcome NOT IN ('accepted', 'duplicate') OR (dedupe_kind IS NOT NULL AND dedupe_key IS NOT NULL)),
  CONSTRAINT deliveries_payload CHECK ((outcome = 'accepted') = (payload IS NOT NULL))
);
-- A delivery is accepted once. Rejected deliveries and duplicates reserve nothing.
CREATE UNIQUE INDEX deliveries_dedupe ON deliveries (webhook_uid, dedupe_kind, dedupe_key)
  WHERE outcome = 'accepted';
-- A webhook's log, newest first, and its old entries for pruning.
CREATE INDEX deliveries_log ON deliveries (webhook_uid, received_at DESC, uid DESC);

CREATE TABLE code_host_webhooks (
  code_host_uid uuid           PRIMARY KEY,
  team_uid      uuid           NOT NULL,
  provider      text           NOT NULL CONSTRAINT code_host_webhooks_provider CHECK (provider IN ('github', 'gitlab')),
  bot_login     text           NOT NULL,
  enabled       boolean        NOT NULL,
  secret_sealed text,
  is_removed    boolean        NOT NULL DEFAULT false,
  version       integer        NOT NULL DEFAULT 1,
  created_at    timestamptz(3) NOT NULL,
  updated_at    timestamptz(3) NOT NULL,
  CONSTRAINT code_host_webhooks_removed CHECK (NOT is_removed OR secret_sealed IS NULL)
);

CREATE TABLE code_host_deliveries (
  uid           uuid           PRIMARY KEY,
  code_host_uid uuid           NOT NULL,
  team_uid      uuid           NOT NULL,
  provider      text           NOT NULL,
  event         text           NOT NULL DEFAULT '',
  action        text           NOT NULL DEFAULT '',
  outcome       text           NOT NULL
    CONSTRAINT code_host_deliveries_outcome
    CHECK (outcome IN ('accepted', 'duplicate', 'rejected_auth', 'rejected_invalid_json', 'rejected_too_large')),
  dedupe_kind   text,
  dedupe_key    text,
  size_bytes    bigint         NOT NULL,
  received_at   timestamptz(3) NOT NULL,
  headers       jsonb,
  body          bytea,
  CONSTRAINT code_host_deliveries_identified
    CHECK (outcome NOT IN ('accepted', 'duplicate') OR (dedupe_kind IS NOT NULL AND dedupe_key IS NOT NULL)),
  CONSTRAINT code_host_deliveries_body CHECK ((outcome = 'accepted') = (body IS NOT NULL AND headers IS NOT NULL))
);
-- A delivery is accepted once. Rejected deliveries and duplicates reserve nothing.
CREATE UNIQUE INDEX code_host_deliveries_dedupe ON code_host_deliveries (code_host_uid, dedupe_kind, dedupe_key)
  WHERE outcome = 'accepted';
-- A connection's log, newest first, and its old entries for pruning.
CREATE INDEX code_host_deliveries_log ON code_host_deliveries (code_host_uid, received_at DESC, uid DESC);

-- Counts of the last minute. Unlogged: a crash loses only the counts of that minute.
CREATE UNLOGGED TABLE rate_windows (
  receiver_uid   uuid             NOT NULL,
  bucket         text             NOT NULL,
  hits           timestamptz(3)[] NOT NULL,
  accepted_count integer          NOT NULL DEFAULT 1,
  PRIMARY KEY (receiver_uid, bucket)
) WITH (fillfactor = 50);

CREATE TABLE definition_stages (
  factory_uid uuid           NOT NULL,
  version     bigint         NOT NULL,
  team_uid    uuid           NOT NULL,
  webhooks    jsonb          NOT NULL,
  created_at  timestamptz(3) NOT NULL,
  PRIMARY KEY (factory_uid, version)
);

CREATE TABLE definition_versions (
  factory_uid uuid   PRIMARY KEY,
  version     bigint NOT NULL
);

CREATE TABLE idempotency_keys (
  principal_uid text           NOT NULL,
  operation     text           NOT NULL,
  key           text           NOT NULL,
  body_hash     char(64)       NOT NULL,
  response      text           NOT NULL,
  created_at    timestamptz(3) NOT NULL,
  PRIMARY KEY (principal_uid, operation, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- Tables of libs/events. The first migration of a service contains this text.
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

-- Factories, their definitions and their tasks. Meaning of the columns: ../../schema.prisma.

CREATE TABLE factories (
  uid                   uuid           PRIMARY KEY,
  team_uid              uuid           NOT NULL,
  name                  text           NOT NULL CONSTRAINT factories_name CHECK (name <> ''),
  alias                 text,
  description           text,
  code_forge            text           NOT NULL,
  code_forges           text[]         NOT NULL,
  repositories          jsonb          NOT NULL,
  credential_strategy   text           NOT NULL CONSTRAINT factories_strategy CHECK (credential_strategy IN ('EXECUTOR', 'CREATOR')),
  default_environment   text,
  default_model         text,
  agent_defaults        jsonb          NOT NULL,
  scorer_defaults       jsonb          NOT NULL,
  scoring_default_model text,
  integrations          jsonb,
  creator_uid           text           NOT NULL,
  management            text           NOT NULL DEFAULT 'live' CONSTRAINT factories_management CHECK (management IN ('live', 'service_files', 'external_files')),
  current_version       integer        NOT NULL DEFAULT 0,
  last_version          integer        NOT NULL DEFAULT 0,
  foreman_agent_uid     uuid,
  version               integer        NOT NULL DEFAULT 1,
  created_at            timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at            timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  deleted_at            timestamptz(3),
  CONSTRAINT factories_versions CHECK (current_version <= last_version)
);
-- An alias names one live factory of a team, whatever the case.
CREATE UNIQUE INDEX factories_alias ON factories (team_uid, lower(alias)) WHERE deleted_at IS NULL;
-- The list of factories: by name, the same on every machine.
CREATE INDEX factories_by_name ON factories (team_uid, lower(name) COLLATE "C", uid) WHERE deleted_at IS NULL;

CREATE TABLE definition_sources (
  factory_uid         uuid           PRIMARY KEY CONSTRAINT definition_sources_factory_uid_fkey REFERENCES factories (uid) ON DELETE CASCADE,
  kind                text           NOT NULL CONSTRAINT definition_sources_kind CHECK (kind IN ('files', 'git')),
  repository_url      text,
  branch              text,
  directory           text           NOT NULL DEFAULT '',
  files               jsonb          NOT NULL DEFAULT '[]',
  state               text           NOT NULL DEFAULT 'NONE' CONSTRAINT definition_sources_state CHECK (state IN ('NONE', 'APPLYING', 'APPLIED', 'FAILED')),
  applied_fingerprint text,
  applied_revision    text,
  applied_at          timestamptz(3),
  confirmed_version   integer        NOT NULL DEFAULT 0,
  diagnostics         jsonb          NOT NULL DEFAULT '[]',
  apply_token         uuid,
  apply_until         timestamptz(3),
  updated_at          timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT definition_sources_git CHECK (kind <> 'git' OR (repository_url IS NOT NULL AND branch IS NOT NULL))
);

CREATE TABLE definition_versions (
  factory_uid  uuid           NOT NULL CONSTRAINT definition_versions_factory_uid_fkey REFERENCES factories (uid) ON DELETE CASCADE,
  version      integer        NOT NULL,
  state        text           NOT NULL DEFAULT 'STAGING' CONSTRAINT definition_versions_state CHECK (state IN ('STAGING', 'CURRENT', 'SUPERSEDED', 'DROPPED')),
  fingerprint  text           NOT NULL,
  revision     text           NOT NULL,
  files        jsonb          NOT NULL,
  definition   jsonb          NOT NULL,
  diagnostics  jsonb          NOT NULL DEFAULT '[]',
  plan         jsonb          NOT NULL DEFAULT '[]',
  request_id   text           NOT NULL,
  created_by   text           NOT NULL,
  created_at   timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  committed_at timestamptz(3),
  PRIMARY KEY (factory_uid, version)
);
-- One version of a factory serves.
CREATE UNIQUE INDEX definition_versions_current ON definition_versions (factory_uid) WHERE state = 'CURRENT';

CREATE TABLE tasks (
  uid              uuid           PRIMARY KEY,
  factory_uid      uuid           NOT NULL,
  team_uid         uuid           NOT NULL,
  conversation_uid uuid           NOT NULL,
  run_uid          uuid           NOT NULL,
  current_run_uid  uuid           NOT NULL,
  title            text           NOT NULL CONSTRAINT tasks_title CHECK (title <> ''),
  description      text           CONSTRAINT tasks_description CHECK (description <> ''),
  stage            text           NOT NULL DEFAULT 'TRIAGE' CONSTRAINT tasks_stage CHECK (stage IN ('TRIAGE', 'SPEC', 'IMPLEMENT', 'REVIEW', 'COMPLETE', 'CANCELLED')),
  ticket_source    text,
  ticket_id        text,
  version          integer        NOT NULL DEFAULT 1,
  created_at       timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at       timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  deleted_at       timestamptz(3)
);
-- A conversation is bound to one live task, over all factories. COMPLETE and CANCELLED tasks are live.
CREATE UNIQUE INDEX tasks_conversation ON tasks (conversation_uid) WHERE deleted_at IS NULL;
-- A factory's list, by either time, in either order.
CREATE INDEX tasks_by_creation ON tasks (factory_uid, created_at, uid) WHERE deleted_at IS NULL;
CREATE INDEX tasks_by_update ON tasks (factory_uid, updated_at, uid) WHERE deleted_at IS NULL;
-- Whose current run ended?
CREATE INDEX tasks_by_current_run ON tasks (current_run_uid) WHERE deleted_at IS NULL;

CREATE TABLE idempotency_keys (
  principal_uid text           NOT NULL,
  operation     text           NOT NULL,
  key           text           NOT NULL,
  body_hash     char(64)       NOT NULL,
  answer        jsonb          NOT NULL,
  created_at    timestamptz(3) NOT NULL,
  PRIMARY KEY (principal_uid, operation, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- Tables of libs/events. A service's first migration contains this text verbatim.
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

-- Tables of libs/work. A service's first migration contains this text verbatim.
CREATE SCHEMA IF NOT EXISTS stream;

-- Remote effects to be carried out, written in the transaction that decided them.
CREATE TABLE stream.work_items (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind       text NOT NULL,
  key        text NOT NULL, -- the cause; also the idempotency key of the effect
  team_uid   uuid,
  payload    jsonb NOT NULL,
  state      text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'done', 'parked')),
  due_at     timestamptz(3) NOT NULL, -- waiting: not before; running: when the lease ends
  lease      uuid, -- the claim that may finish it
  tries      integer NOT NULL DEFAULT 0,
  last_error text,
  created_at timestamptz(3) NOT NULL,
  ended_at   timestamptz(3),
  UNIQUE (kind, key)
) WITH (fillfactor = 80);
CREATE INDEX work_items_due ON stream.work_items (due_at) WHERE state IN ('waiting', 'running');
CREATE INDEX work_items_parked ON stream.work_items (kind) WHERE state = 'parked';
CREATE INDEX work_items_done ON stream.work_items (ended_at) WHERE state = 'done';

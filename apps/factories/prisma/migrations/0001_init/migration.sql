-- Factories, their definitions, tasks and automations. The columns are explained in ../../schema.prisma.

CREATE TABLE factories (
  uid                   uuid           PRIMARY KEY,
  team_uid              uuid           NOT NULL,
  name                  text           NOT NULL CONSTRAINT factories_name CHECK (name <> ''),
  alias                 text,
  description           text,
  code_forge            text           NOT NULL,
  code_forges           text[]         NOT NULL,
  repositories          jsonb          NOT NULL,
  credential_strategy   text           NOT NULL
    CONSTRAINT factories_strategy CHECK (credential_strategy IN ('EXECUTOR', 'CREATOR')),
  default_environment   text,
  default_model         text,
  agent_defaults        jsonb          NOT NULL,
  scorer_defaults       jsonb          NOT NULL,
  scoring_default_model text,
  integrations          jsonb,
  concurrency_limit     integer        NOT NULL DEFAULT 0 CHECK (concurrency_limit >= 0),
  queue_paused          boolean        NOT NULL DEFAULT false,
  creator_uid           text           NOT NULL,
  management            text           NOT NULL DEFAULT 'live'
    CONSTRAINT factories_management CHECK (management IN ('live', 'service_files', 'external_files')),
  current_version       integer        NOT NULL DEFAULT 0,
  last_version          integer        NOT NULL DEFAULT 0,
  foreman_agent_uid     uuid,
  version               integer        NOT NULL DEFAULT 1,
  created_at            timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at            timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  deleted_at            timestamptz(3),
  CONSTRAINT factories_versions CHECK (current_version <= last_version)
);
-- Aliases are unique within a team and case-insensitive.
CREATE UNIQUE INDEX factories_alias ON factories (team_uid, lower(alias))
  WHERE deleted_at IS NULL;
-- The list of factories, by name. The collation makes the order independent of the machine.
CREATE INDEX factories_by_name ON factories (team_uid, lower(name) COLLATE "C", uid)
  WHERE deleted_at IS NULL;

CREATE TABLE definition_sources (
  factory_uid         uuid           PRIMARY KEY
    CONSTRAINT definition_sources_factory_uid_fkey REFERENCES factories (uid) ON DELETE CASCADE,
  kind                text           NOT NULL CONSTRAINT definition_sources_kind CHECK (kind IN ('files', 'git')),
  repository_url      text,
  branch              text,
  directory           text           NOT NULL DEFAULT '',
  secret_name         text,
  username            text,
  files               jsonb          NOT NULL DEFAULT '[]',
  state               text           NOT NULL DEFAULT 'NONE'
    CONSTRAINT definition_sources_state CHECK (state IN ('NONE', 'APPLYING', 'APPLIED', 'FAILED')),
  applied_fingerprint text,
  applied_revision    text,
  applied_at          timestamptz(3),
  confirmed_version   integer        NOT NULL DEFAULT 0,
  diagnostics         jsonb          NOT NULL DEFAULT '[]',
  apply_lease_uid     uuid,
  apply_lease_until   timestamptz(3),
  updated_at          timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT definition_sources_git CHECK (kind <> 'git' OR (repository_url IS NOT NULL AND branch IS NOT NULL))
);

CREATE TABLE definition_versions (
  factory_uid  uuid           NOT NULL
    CONSTRAINT definition_versions_factory_uid_fkey REFERENCES factories (uid) ON DELETE CASCADE,
  version      integer        NOT NULL,
  state        text           NOT NULL DEFAULT 'STAGING'
    CONSTRAINT definition_versions_state CHECK (state IN ('STAGING', 'CURRENT', 'SUPERSEDED', 'DISCARDED')),
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
-- A factory has one active version.
CREATE UNIQUE INDEX definition_versions_current ON definition_versions (factory_uid)
  WHERE state = 'CURRENT';

CREATE TABLE tracked_branches (
  uid                 uuid           PRIMARY KEY,
  factory_uid         uuid           NOT NULL
    CONSTRAINT tracked_branches_factory_uid_fkey REFERENCES factories (uid) ON DELETE CASCADE,
  team_uid            uuid           NOT NULL,
  repository_url      text           NOT NULL,
  name                text           NOT NULL,
  is_production       boolean        NOT NULL,
  state               text           NOT NULL DEFAULT 'ACTIVE'
    CONSTRAINT tracked_branches_state CHECK (state IN ('ACTIVE', 'APPLYING', 'FAILED')),
  registered_head_sha text,
  applied_sha         text,
  applied_fingerprint text,
  last_applied_at     timestamptz(3),
  last_checked_at     timestamptz(3),
  apply_error         jsonb,
  poll_error          jsonb,
  poll_failures       integer        NOT NULL DEFAULT 0,
  poll_at             timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  version             integer        NOT NULL DEFAULT 1,
  created_at          timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at          timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  deleted_at          timestamptz(3),
  -- A branch that is no longer tracked is not the production branch.
  CONSTRAINT tracked_branches_untracked CHECK (deleted_at IS NULL OR NOT is_production)
);
-- A factory tracks a branch once. Rows of branches that are no longer tracked remain until they are pruned.
CREATE UNIQUE INDEX tracked_branches_name ON tracked_branches (factory_uid, name)
  WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX tracked_branches_production ON tracked_branches (factory_uid)
  WHERE is_production;
-- The next head to poll.
CREATE INDEX tracked_branches_due ON tracked_branches (poll_at)
  WHERE deleted_at IS NULL;
-- For pruning.
CREATE INDEX tracked_branches_pruning ON tracked_branches (deleted_at)
  WHERE deleted_at IS NOT NULL;

CREATE TABLE tasks (
  uid               uuid           PRIMARY KEY,
  factory_uid       uuid           NOT NULL,
  team_uid          uuid           NOT NULL,
  conversation_uid  uuid           NOT NULL,
  run_uid           uuid           NOT NULL,
  current_run_uid   uuid           NOT NULL,
  started_by_uid    text,
  title             text           NOT NULL CONSTRAINT tasks_title CHECK (title <> ''),
  description       text           CONSTRAINT tasks_description CHECK (description <> ''),
  stage             text           NOT NULL DEFAULT 'TRIAGE'
    CONSTRAINT tasks_stage CHECK (stage IN ('TRIAGE', 'SPEC', 'IMPLEMENT', 'REVIEW', 'COMPLETE', 'CANCELLED')),
  stage_run_version jsonb,
  ticket_source     text,
  ticket_id         text,
  version           integer        NOT NULL DEFAULT 1,
  created_at        timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at        timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  deleted_at        timestamptz(3)
);
-- A conversation has at most one task that is not deleted, over all factories.
CREATE UNIQUE INDEX tasks_conversation ON tasks (conversation_uid)
  WHERE deleted_at IS NULL;
-- The list of a factory, by creation or update time, in either direction.
CREATE INDEX tasks_by_creation ON tasks (factory_uid, created_at, uid)
  WHERE deleted_at IS NULL;
CREATE INDEX tasks_by_update ON tasks (factory_uid, updated_at, uid)
  WHERE deleted_at IS NULL;
-- The task whose current run has ended.
CREATE INDEX tasks_by_current_run ON tasks (current_run_uid)
  WHERE deleted_at IS NULL;
CREATE INDEX tasks_by_ticket ON tasks (factory_uid, lower(ticket_id))
  WHERE deleted_at IS NULL AND ticket_id IS NOT NULL;

CREATE TABLE automations (
  uid                  uuid           PRIMARY KEY,
  factory_uid          uuid           NOT NULL,
  team_uid             uuid           NOT NULL,
  name                 text           NOT NULL CONSTRAINT automations_name CHECK (name <> ''),
  enabled              boolean        NOT NULL,
  definition           jsonb          NOT NULL,
  providers            text[]         NOT NULL,
  management           text           NOT NULL
    CONSTRAINT automations_management CHECK (management IN ('live', 'files')),
  projected_definition jsonb,
  creator_type         text           NOT NULL,
  creator_uid          text           NOT NULL,
  creator_lost_access  boolean        NOT NULL DEFAULT false,
  version              integer        NOT NULL DEFAULT 1,
  created_at           timestamptz(3) NOT NULL,
  updated_at           timestamptz(3) NOT NULL,
  deleted_at           timestamptz(3),
  CONSTRAINT automations_defined CHECK ((management = 'files') = (projected_definition IS NOT NULL))
);
-- The automations of a factory, oldest first.
CREATE INDEX automations_by_factory ON automations (factory_uid, created_at, uid)
  WHERE deleted_at IS NULL;
-- Events of code hosts belong to a team.
CREATE INDEX automations_by_team ON automations (team_uid)
  WHERE deleted_at IS NULL;
-- A file defines one automation of its factory.
CREATE UNIQUE INDEX automations_file ON automations (factory_uid, name)
  WHERE deleted_at IS NULL AND management = 'files';

CREATE TABLE trigger_events (
  factory_uid  uuid           NOT NULL,
  uid          uuid           NOT NULL,
  team_uid     uuid           NOT NULL,
  provider     text           NOT NULL,
  event        text           NOT NULL,
  delivery_uid uuid,
  subject      jsonb          NOT NULL,
  request_id   text           NOT NULL,
  occurred_at  timestamptz(3) NOT NULL,
  decided_at   timestamptz(3) NOT NULL,
  PRIMARY KEY (factory_uid, uid)
);
-- The decisions about a delivery, including its replays.
CREATE INDEX trigger_events_by_delivery ON trigger_events (factory_uid, delivery_uid)
  WHERE delivery_uid IS NOT NULL;
CREATE INDEX trigger_events_age ON trigger_events (decided_at);

CREATE TABLE decisions (
  factory_uid     uuid           NOT NULL,
  event_uid       uuid           NOT NULL,
  automation_uid  uuid           NOT NULL,
  automation_name text           NOT NULL,
  outcome         text           NOT NULL
    CONSTRAINT decisions_outcome
    CHECK (outcome IN ('pending', 'fired', 'continued', 'not_matched', 'disabled', 'suppressed', 'failed')),
  explanation     text           NOT NULL,
  checks          jsonb          NOT NULL,
  run_input       jsonb,
  run_uid         uuid,
  build_task_uid  uuid,
  decided_at      timestamptz(3) NOT NULL,
  next_attempt_at timestamptz(3),
  PRIMARY KEY (factory_uid, event_uid, automation_uid),
  CONSTRAINT decisions_event
    FOREIGN KEY (factory_uid, event_uid) REFERENCES trigger_events (factory_uid, uid) ON DELETE CASCADE,
  CONSTRAINT decisions_fired CHECK ((outcome IN ('fired', 'continued')) = (run_uid IS NOT NULL)),
  -- A pending decision waits either for its run or for the code host that has what its filter needs.
  CONSTRAINT decisions_pending CHECK ((outcome = 'pending') = (num_nonnulls(run_input, next_attempt_at) = 1))
);
-- The decisions of an automation, newest first.
CREATE INDEX decisions_of_automation ON decisions (factory_uid, automation_uid, decided_at DESC, event_uid DESC);
CREATE INDEX decisions_of_factory
  ON decisions (factory_uid, decided_at DESC, event_uid DESC, automation_uid DESC);
-- When an automation last fired.
CREATE INDEX decisions_fired_last ON decisions (automation_uid, decided_at DESC)
  WHERE run_uid IS NOT NULL;
-- How often builds recently continued a task.
CREATE INDEX decisions_of_builds ON decisions (factory_uid, build_task_uid, decided_at)
  WHERE build_task_uid IS NOT NULL;

CREATE TABLE idempotency_keys (
  principal_uid text           NOT NULL,
  operation     text           NOT NULL,
  key           text           NOT NULL,
  body_hash     char(64)       NOT NULL,
  response      jsonb          NOT NULL,
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

-- Tables of libs/work. The first migration of a service that uses it contains this text.

-- Calls to other systems, written in the transaction that decided them.
CREATE TABLE stream.work_items (
  id          bigint         GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind        text           NOT NULL,
  key         text           NOT NULL, -- the cause; also the idempotency key of the call
  team_uid    uuid,
  payload     jsonb          NOT NULL,
  state       text           NOT NULL DEFAULT 'waiting'
    CHECK (state IN ('waiting', 'running', 'done', 'dead_lettered')),
  due_at      timestamptz(3) NOT NULL, -- waiting: not before; running: when the lease ends
  lease       uuid,                    -- the claim that may finish the item
  attempts    integer        NOT NULL DEFAULT 0,
  last_error  text,
  traceparent text,                    -- W3C trace context of the operation that decided it
  created_at  timestamptz(3) NOT NULL,
  ended_at    timestamptz(3),
  UNIQUE (kind, key)
) WITH (fillfactor = 80);
CREATE INDEX work_items_due ON stream.work_items (due_at)
  WHERE state IN ('waiting', 'running');
-- Teams take turns: the due items of a team, and the number of running items of each team. Items without a team share a
-- turn.
CREATE INDEX work_items_by_team
  ON stream.work_items ((coalesce(team_uid, '00000000-0000-0000-0000-000000000000'::uuid)), due_at, id)
  WHERE state IN ('waiting', 'running');
CREATE INDEX work_items_running
  ON stream.work_items ((coalesce(team_uid, '00000000-0000-0000-0000-000000000000'::uuid)))
  WHERE state = 'running';
CREATE INDEX work_items_dead_lettered ON stream.work_items (kind)
  WHERE state = 'dead_lettered';
CREATE INDEX work_items_done ON stream.work_items (ended_at)
  WHERE state = 'done';

-- Schedules, their slots, and the schedule triggers of automations. The columns are explained in ../../schema.prisma.

CREATE TABLE schedules (
  uid                 uuid           PRIMARY KEY,
  owner_type          text           NOT NULL CONSTRAINT schedules_owner CHECK (owner_type IN ('team', 'user')),
  owner_uid           uuid           NOT NULL,
  name                text           NOT NULL CONSTRAINT schedules_name CHECK (name <> ''),
  cron_schedule       text           NOT NULL,
  time_zone           text,
  enabled             boolean        NOT NULL,
  prompt              text           NOT NULL,
  agent_config        jsonb,
  agent_uid           uuid,
  mode                text           NOT NULL DEFAULT 'normal',
  metadata            jsonb          NOT NULL DEFAULT '{}',
  overlap_policy      text           NOT NULL DEFAULT 'allow'
    CONSTRAINT schedules_overlap CHECK (overlap_policy IN ('allow', 'skip', 'buffer_one', 'cancel_other')),
  catch_up_seconds    integer        NOT NULL DEFAULT 86400 CONSTRAINT schedules_catch_up CHECK (catch_up_seconds >= 0),
  creator_type        text           NOT NULL,
  creator_uid         text           NOT NULL,
  creator_lost_access boolean        NOT NULL DEFAULT false,
  updated_by_uid      text           NOT NULL,
  next_slot_at        timestamptz(3),
  last_ran_at         timestamptz(3),
  last_spawn_error    text,
  version             integer        NOT NULL DEFAULT 1,
  created_at          timestamptz(3) NOT NULL,
  updated_at          timestamptz(3) NOT NULL,
  deleted_at          timestamptz(3),
  -- Paused and deleted schedules never fire.
  CONSTRAINT schedules_rest CHECK (next_slot_at IS NULL OR (enabled AND deleted_at IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX schedules_due ON schedules (next_slot_at)
  WHERE next_slot_at IS NOT NULL;
-- The list of schedules, by name. The collation makes the order independent of the machine.
CREATE INDEX schedules_by_name ON schedules (owner_uid, lower(name) COLLATE "C", uid)
  WHERE deleted_at IS NULL;
-- Schedules of an agent that is deleted.
CREATE INDEX schedules_by_agent ON schedules (agent_uid)
  WHERE deleted_at IS NULL AND agent_uid IS NOT NULL;
-- Schedules of a person who leaves a team.
CREATE INDEX schedules_by_creator ON schedules (owner_uid, creator_uid)
  WHERE deleted_at IS NULL;

CREATE TABLE slots (
  schedule_uid uuid           NOT NULL
    CONSTRAINT slots_schedule_uid_fkey REFERENCES schedules (uid) ON DELETE CASCADE,
  slot_at      timestamptz(3) NOT NULL,
  state        text           NOT NULL
    CONSTRAINT slots_state CHECK (state IN ('due', 'buffered', 'fired', 'skipped', 'missed')),
  reason       text,
  message      text,
  run_uid      uuid,
  decided_at   timestamptz(3),
  due_at       timestamptz(3),
  lease        uuid,
  attempts     integer        NOT NULL DEFAULT 0,
  PRIMARY KEY (schedule_uid, slot_at),
  CONSTRAINT slots_fired CHECK ((state = 'fired') = (run_uid IS NOT NULL)),
  CONSTRAINT slots_open CHECK ((state IN ('due', 'buffered')) = (due_at IS NOT NULL))
) WITH (fillfactor = 80);
CREATE INDEX slots_undecided ON slots (due_at)
  WHERE state IN ('due', 'buffered');
-- The slot of a run that has ended.
CREATE INDEX slots_by_run ON slots (run_uid)
  WHERE run_uid IS NOT NULL;
-- For pruning. Old slots are stored together, so a summary per range of pages is enough.
CREATE INDEX slots_by_decision ON slots USING brin (decided_at) WITH (autosummarize = on);

CREATE TABLE trigger_schedules (
  uid            uuid           PRIMARY KEY,
  automation_uid uuid           NOT NULL,
  factory_uid    uuid           NOT NULL,
  team_uid       uuid           NOT NULL,
  name           text           NOT NULL,
  cron           text           NOT NULL,
  next_slot_at   timestamptz(3),
  last_slot_at   timestamptz(3),
  version        integer        NOT NULL,
  CONSTRAINT trigger_schedules_forward CHECK (next_slot_at > last_slot_at)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX trigger_schedules_automation_uid_name_cron_key ON trigger_schedules (automation_uid, name, cron);
CREATE INDEX trigger_schedules_factory_uid_idx ON trigger_schedules (factory_uid);
CREATE INDEX trigger_schedules_team_uid_idx ON trigger_schedules (team_uid);
CREATE INDEX trigger_schedules_due ON trigger_schedules (next_slot_at)
  WHERE next_slot_at IS NOT NULL;

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

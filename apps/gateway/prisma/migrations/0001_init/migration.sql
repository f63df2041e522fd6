-- Who may call, and what an agent is. Described in prisma/schema.prisma; checks and partial indexes are here only.

CREATE TABLE teams (
  uid               uuid PRIMARY KEY,
  name              text NOT NULL,
  factory_branches  boolean NOT NULL DEFAULT true,
  metadata_filter   boolean NOT NULL DEFAULT true,
  concurrency_limit integer NOT NULL DEFAULT 0 CHECK (concurrency_limit >= 0),
  agent_defaults    jsonb NOT NULL DEFAULT '{}',
  version           integer NOT NULL DEFAULT 1,
  created_at        timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at        timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE users (
  uid            uuid PRIMARY KEY,
  email          text NOT NULL CHECK (email = lower(email)),
  display_name   text NOT NULL,
  platform_admin boolean NOT NULL DEFAULT false,
  created_at     timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE UNIQUE INDEX users_email_key ON users (email);

CREATE TABLE memberships (
  team_uid   uuid NOT NULL REFERENCES teams (uid) ON DELETE CASCADE,
  user_uid   uuid NOT NULL REFERENCES users (uid) ON DELETE CASCADE,
  role       text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
  version    integer NOT NULL DEFAULT 1,
  created_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (team_uid, user_uid)
);
CREATE INDEX memberships_by_user ON memberships (user_uid);
CREATE INDEX memberships_by_team ON memberships (team_uid, created_at, user_uid);

CREATE TABLE agents (
  uid               uuid PRIMARY KEY,
  team_uid          uuid NOT NULL REFERENCES teams (uid) ON DELETE CASCADE,
  factory_uid       uuid,
  name              text NOT NULL,
  agent_type        text NOT NULL CHECK (agent_type IN ('FOREMAN', 'TRIAGE', 'SPEC', 'IMPLEMENT', 'REVIEW', 'VERIFY', 'CUSTOM')),
  description       text NOT NULL DEFAULT '',
  prompt            text NOT NULL DEFAULT '',
  config            jsonb NOT NULL DEFAULT '{}',
  enabled           boolean NOT NULL DEFAULT true,
  file_managed      boolean NOT NULL DEFAULT false,
  concurrency_limit integer NOT NULL DEFAULT 0 CHECK (concurrency_limit >= 0),
  version           integer NOT NULL DEFAULT 1,
  created_at        timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at        timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX agents_by_team ON agents (team_uid, created_at DESC, uid);
-- Within a factory an agent is found by its name, and dispatched work has exactly one receiver.
CREATE UNIQUE INDEX agents_name_in_factory ON agents (team_uid, factory_uid, name) WHERE factory_uid IS NOT NULL;
CREATE UNIQUE INDEX agents_one_foreman ON agents (team_uid, factory_uid) WHERE factory_uid IS NOT NULL AND agent_type = 'FOREMAN';

CREATE TABLE api_keys (
  uid          uuid PRIMARY KEY,
  hash         text NOT NULL,
  prefix       text NOT NULL,
  name         text NOT NULL,
  kind         text NOT NULL,
  user_uid     uuid REFERENCES users (uid) ON DELETE CASCADE,
  agent_uid    uuid REFERENCES agents (uid) ON DELETE CASCADE, -- deleting an agent revokes its keys in the same statement
  team_uid     uuid REFERENCES teams (uid) ON DELETE CASCADE,
  all_teams    boolean NOT NULL DEFAULT false,
  scopes       text[],
  created_by   text NOT NULL,
  expires_at   timestamptz(3),
  last_used_at timestamptz(3),
  created_at   timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CHECK (CASE kind WHEN 'api' THEN team_uid IS NOT NULL AND num_nonnulls(user_uid, agent_uid) = 1
                   WHEN 'worker' THEN num_nonnulls(user_uid, agent_uid) = 0 ELSE false END),
  CHECK (NOT all_teams OR user_uid IS NOT NULL)
);
CREATE UNIQUE INDEX api_keys_hash_key ON api_keys (hash);
CREATE INDEX api_keys_by_team ON api_keys (team_uid, created_at DESC, uid DESC);
CREATE INDEX api_keys_by_agent ON api_keys (agent_uid);
CREATE INDEX api_keys_by_user ON api_keys (user_uid);

CREATE TABLE managed_secrets (
  uid        uuid PRIMARY KEY,
  team_uid   uuid NOT NULL REFERENCES teams (uid) ON DELETE CASCADE,
  name       text NOT NULL,
  sealed     text NOT NULL,
  version    integer NOT NULL DEFAULT 1,
  updated_by text NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE UNIQUE INDEX managed_secrets_team_uid_name_key ON managed_secrets (team_uid, name);

CREATE TABLE factory_layers (
  factory_uid       uuid PRIMARY KEY,
  team_uid          uuid NOT NULL,
  version           bigint NOT NULL,
  config            jsonb NOT NULL,
  concurrency_limit integer NOT NULL DEFAULT 0 CHECK (concurrency_limit >= 0),
  updated_at        timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE definition_stages (
  factory_uid uuid NOT NULL,
  version     bigint NOT NULL,
  team_uid    uuid NOT NULL,
  definition  jsonb NOT NULL,
  created_at  timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (factory_uid, version)
);

CREATE TABLE idempotency (
  principal  text NOT NULL,
  operation  text NOT NULL,
  key        text NOT NULL,
  body_hash  text NOT NULL,
  answer     text, -- null only inside the transaction of the create
  expires_at timestamptz(3) NOT NULL,
  PRIMARY KEY (principal, operation, key)
);
CREATE INDEX idempotency_by_expiry ON idempotency (expires_at);

CREATE TABLE audit_log (
  uid         uuid PRIMARY KEY,
  team_uid    uuid,
  source      text NOT NULL,
  type        text NOT NULL,
  entity      text NOT NULL,
  entity_uid  text NOT NULL,
  actor_type  text NOT NULL,
  actor_uid   text NOT NULL,
  request_id  text NOT NULL,
  cause       text,
  payload     jsonb NOT NULL,
  occurred_at timestamptz(3) NOT NULL
);
CREATE INDEX audit_by_team ON audit_log (team_uid, occurred_at DESC, uid DESC);

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

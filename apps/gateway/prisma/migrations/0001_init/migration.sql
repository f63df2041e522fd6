-- Identity (teams, people, agents, keys, secrets) and the audit log. The columns are explained in ../../schema.prisma.

CREATE TABLE teams (
  uid               uuid             PRIMARY KEY,
  name              text             NOT NULL,
  factory_branches  boolean          NOT NULL DEFAULT true,
  metadata_filter   boolean          NOT NULL DEFAULT true,
  concurrency_limit integer          NOT NULL DEFAULT 0 CHECK (concurrency_limit >= 0),
  queue_weight      double precision NOT NULL DEFAULT 1 CHECK (queue_weight > 0),
  queue_paused      boolean          NOT NULL DEFAULT false,
  agent_defaults    jsonb            NOT NULL DEFAULT '{}',
  version           integer          NOT NULL DEFAULT 1,
  created_at        timestamptz(3)   NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at        timestamptz(3)   NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE users (
  uid            uuid           PRIMARY KEY,
  email          text           NOT NULL CHECK (email = lower(email)),
  display_name   text           NOT NULL,
  platform_admin boolean        NOT NULL DEFAULT false,
  claimed_at     timestamptz(3), -- until then the creator of the account may have its only key
  created_at     timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE UNIQUE INDEX users_email_key ON users (email);

CREATE TABLE memberships (
  team_uid   uuid           NOT NULL REFERENCES teams (uid) ON DELETE CASCADE,
  user_uid   uuid           NOT NULL REFERENCES users (uid) ON DELETE CASCADE,
  role       text           NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
  version    integer        NOT NULL DEFAULT 1,
  created_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (team_uid, user_uid)
);
-- Read by every authentication of a user.
CREATE INDEX memberships_by_user ON memberships (user_uid);
-- The members of a team, oldest first.
CREATE INDEX memberships_by_team ON memberships (team_uid, created_at, user_uid);

-- People who already use the platform join a team by accepting an invitation.
CREATE TABLE invitations (
  uid        uuid           PRIMARY KEY,
  team_uid   uuid           NOT NULL REFERENCES teams (uid) ON DELETE CASCADE,
  email      text           NOT NULL,
  role       text           NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
  invited_by uuid           NOT NULL REFERENCES users (uid) ON DELETE CASCADE,
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  CONSTRAINT invitations_once UNIQUE (team_uid, email)
);
CREATE INDEX invitations_by_email ON invitations (email);

CREATE TABLE agents (
  uid               uuid           PRIMARY KEY,
  team_uid          uuid           NOT NULL REFERENCES teams (uid) ON DELETE CASCADE,
  factory_uid       uuid,
  name              text           NOT NULL,
  agent_type        text           NOT NULL
    CHECK (agent_type IN ('FOREMAN', 'TRIAGE', 'SPEC', 'IMPLEMENT', 'REVIEW', 'VERIFY', 'CUSTOM')),
  description       text           NOT NULL DEFAULT '',
  prompt            text           NOT NULL DEFAULT '',
  config            jsonb          NOT NULL DEFAULT '{}',
  enabled           boolean        NOT NULL DEFAULT true,
  file_managed      boolean        NOT NULL DEFAULT false,
  concurrency_limit integer        NOT NULL DEFAULT 0 CHECK (concurrency_limit >= 0),
  queue_priority    integer        NOT NULL DEFAULT 0,
  queue_paused      boolean        NOT NULL DEFAULT false,
  version           integer        NOT NULL DEFAULT 1,
  created_at        timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at        timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
-- The agents of a team, newest first.
CREATE INDEX agents_by_team ON agents (team_uid, created_at DESC, uid);
-- Within a factory an agent is found by its name, and one foreman receives dispatched work.
CREATE UNIQUE INDEX agents_name_in_factory ON agents (team_uid, factory_uid, name)
  WHERE factory_uid IS NOT NULL;
CREATE UNIQUE INDEX agents_one_foreman ON agents (team_uid, factory_uid)
  WHERE factory_uid IS NOT NULL AND agent_type = 'FOREMAN';

-- Names of deleted agents, shown for the runs that they created and executed.
CREATE TABLE former_agents (
  uid        uuid           PRIMARY KEY,
  team_uid   uuid           NOT NULL REFERENCES teams (uid) ON DELETE CASCADE,
  name       text           NOT NULL,
  deleted_at timestamptz(3) NOT NULL DEFAULT now()
);

CREATE TABLE api_keys (
  uid          uuid           PRIMARY KEY,
  hash         text           NOT NULL,
  prefix       text           NOT NULL,
  name         text           NOT NULL,
  kind         text           NOT NULL,
  user_uid     uuid           REFERENCES users (uid) ON DELETE CASCADE,
  agent_uid    uuid           REFERENCES agents (uid) ON DELETE CASCADE, -- deleting an agent revokes its keys
  team_uid     uuid           REFERENCES teams (uid) ON DELETE CASCADE,
  all_teams    boolean        NOT NULL DEFAULT false,
  personal     boolean        NOT NULL DEFAULT false,
  scopes       text[],
  created_by   text           NOT NULL,
  expires_at   timestamptz(3),
  last_used_at timestamptz(3),
  created_at   timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  -- A person in no team has a key that an operator created. Joining a team makes it one of that team's keys.
  CONSTRAINT api_keys_owner CHECK (
    CASE kind
      WHEN 'api' THEN (team_uid IS NOT NULL OR all_teams) AND num_nonnulls(user_uid, agent_uid) = 1
      WHEN 'worker' THEN num_nonnulls(user_uid, agent_uid) = 0
      ELSE false
    END),
  CONSTRAINT api_keys_all_teams CHECK (NOT all_teams OR user_uid IS NOT NULL)
);
CREATE UNIQUE INDEX api_keys_hash_key ON api_keys (hash);
-- The keys of a team, newest first.
CREATE INDEX api_keys_by_team ON api_keys (team_uid, created_at DESC, uid DESC);
-- For revocation with the agent and with the membership.
CREATE INDEX api_keys_by_agent ON api_keys (agent_uid);
CREATE INDEX api_keys_by_user ON api_keys (user_uid);

CREATE TABLE managed_secrets (
  uid        uuid           PRIMARY KEY,
  team_uid   uuid           NOT NULL REFERENCES teams (uid) ON DELETE CASCADE,
  name       text           NOT NULL,
  sealed     text           NOT NULL,
  version    integer        NOT NULL DEFAULT 1,
  updated_by text           NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE UNIQUE INDEX managed_secrets_team_uid_name_key ON managed_secrets (team_uid, name);

-- The master key that seals this platform's secrets. A start with another key is refused instead of failing at the
-- first secret.
CREATE TABLE master_key (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  key_id  text    NOT NULL
);

CREATE TABLE factory_layers (
  factory_uid uuid           PRIMARY KEY,
  team_uid    uuid           NOT NULL,
  version     bigint         NOT NULL,
  config      jsonb          NOT NULL,
  updated_at  timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE definition_stages (
  factory_uid uuid           NOT NULL,
  version     bigint         NOT NULL,
  team_uid    uuid           NOT NULL,
  definition  jsonb          NOT NULL,
  created_at  timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (factory_uid, version)
);

CREATE TABLE idempotency_keys (
  principal  text           NOT NULL,
  operation  text           NOT NULL,
  key        text           NOT NULL,
  body_hash  text           NOT NULL,
  response   text,          -- null only inside the transaction of the request
  expires_at timestamptz(3) NOT NULL,
  PRIMARY KEY (principal, operation, key)
);
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

CREATE TABLE audit_log (
  uid         uuid           PRIMARY KEY,
  team_uid    uuid,
  source      text           NOT NULL,
  type        text           NOT NULL,
  entity      text           NOT NULL,
  entity_uid  text           NOT NULL,
  actor_type  text           NOT NULL,
  actor_uid   text           NOT NULL,
  request_id  text           NOT NULL,
  cause       text,
  payload     jsonb          NOT NULL,
  occurred_at timestamptz(3) NOT NULL
);
-- The log of a team, newest first.
CREATE INDEX audit_by_team ON audit_log (team_uid, occurred_at DESC, uid DESC);

-- Requests of the last minute for metrics, costs and pull requests, shared by all replicas. Unlogged: a crash loses
-- only the counts of that minute.
CREATE UNLOGGED TABLE metrics_requests (
  credential_hash text             NOT NULL,
  factory_uid     uuid             NOT NULL,
  requests        timestamptz(3)[] NOT NULL,
  expires_at      timestamptz(3)   NOT NULL,
  PRIMARY KEY (credential_hash, factory_uid)
) WITH (fillfactor = 50);

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

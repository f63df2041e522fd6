-- The life cycle of runs: hand-written SQL (src/store). Prisma manages none of these tables.
--
-- Lock order, everywhere: runs (by uid) -> lanes -> capacity (by scope, uid) -> leaf rows (leases, run_streams).
-- The run row is the mutex of a run: whoever changes a run, its executions, directives, messages or waits locks it first.
-- Heartbeat locks leases only, event append run_streams only. A claim takes lanes and capacity first, runs with SKIP LOCKED.

CREATE SCHEMA IF NOT EXISTS stream;

-- What the API shows of work being done. Changed only when its state changes or a message arrives.
CREATE TABLE runs (
  uid                uuid PRIMARY KEY,
  root_run_uid       uuid NOT NULL,
  parent_run_uid     uuid REFERENCES runs (uid),
  depth              integer NOT NULL,                -- 0 for a root
  owner_type         text NOT NULL CHECK (owner_type IN ('team', 'user')),
  owner_uid          uuid NOT NULL,
  creator_type       text NOT NULL,
  creator_uid        text NOT NULL,
  executor_uid       text NOT NULL,                   -- the principal the run acts as
  agent_uid          uuid,
  agent_name         text,
  factory_uid        uuid,
  definition_version bigint,
  environment_uid    text,
  title              text NOT NULL,
  state              text NOT NULL CHECK (state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED')),
  status_message     text,
  error_code         text,                            -- public catalog
  error_retryable    boolean,
  prompt             text NOT NULL,                   -- with context added by the service
  submitted_prompt   text,                            -- as submitted; follow-ups sent before the start are appended
  mode               text NOT NULL,
  interactive        boolean NOT NULL,
  source             text NOT NULL,
  origin             text,                            -- 'dispatch' when a factory's dispatch made it
  execution_location text NOT NULL DEFAULT 'REMOTE' CHECK (execution_location IN ('REMOTE', 'LOCAL')),
  conversation_uid   uuid NOT NULL,
  session_uid        text,                            -- of the newest agent session
  trigger_url        text,
  schedule           jsonb,
  config_name        text,                            -- agent_config.name, for the list filter
  model_id           text,
  skill_spec         text,
  agent_config       jsonb NOT NULL,                  -- public AgentConfigSnapshot, resolved
  agent_skill        jsonb,
  frozen             jsonb NOT NULL,                  -- everything an execution needs; names of secrets, never values
  metadata           jsonb NOT NULL DEFAULT '{}',
  cause_key          text,                            -- unique per owner, for ever
  execution_count    integer NOT NULL DEFAULT 1,
  run_time_ms        bigint NOT NULL DEFAULT 0,       -- of executions that have ended
  version            integer NOT NULL DEFAULT 1,      -- raised by every change
  created_at         timestamptz(3) NOT NULL DEFAULT now(),
  updated_at         timestamptz(3) NOT NULL DEFAULT now(),
  started_at         timestamptz(3),
  finished_at        timestamptz(3)
);
CREATE UNIQUE INDEX runs_cause_key ON runs (owner_uid, cause_key) WHERE cause_key IS NOT NULL;
CREATE INDEX runs_by_update ON runs (owner_uid, updated_at DESC, uid DESC);
CREATE INDEX runs_by_creation ON runs (owner_uid, created_at DESC, uid DESC);
CREATE INDEX runs_by_tree ON runs (root_run_uid);
CREATE INDEX runs_by_parent ON runs (parent_run_uid) WHERE parent_run_uid IS NOT NULL;
CREATE INDEX runs_by_conversation ON runs (conversation_uid, created_at DESC);
CREATE INDEX runs_live_by_factory ON runs (factory_uid) WHERE state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS');

-- Queued executions that any of the same workers could take, under the same caps. Inserted when missing, never updated.
CREATE TABLE lanes (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner_type  text NOT NULL,
  owner_uid   uuid NOT NULL,
  agent_uid   uuid,
  factory_uid uuid,
  worker_host text,          -- only workers of this id may take it; null = any
  harness     text NOT NULL,
  UNIQUE NULLS NOT DISTINCT (owner_uid, agent_uid, factory_uid, worker_host, harness)
);

-- How many executions run at once, and how many may. Owners (team, user) also carry their share of the queue.
CREATE TABLE capacity (
  scope        text NOT NULL CHECK (scope IN ('agent', 'factory', 'team', 'user')),
  uid          uuid NOT NULL,
  in_use       integer NOT NULL DEFAULT 0 CHECK (in_use >= 0),
  in_use_max   integer NOT NULL CHECK (in_use_max > 0),
  virtual_time double precision NOT NULL DEFAULT 0,  -- raised by 1 / weight per claim
  last_start   double precision NOT NULL DEFAULT 0,  -- virtual start of the newest claim; its maximum is the queue's clock
  weight       double precision NOT NULL DEFAULT 1 CHECK (weight > 0),
  PRIMARY KEY (scope, uid)
) WITH (fillfactor = 70);
CREATE INDEX capacity_clock ON capacity (last_start DESC) WHERE scope IN ('team', 'user');

-- One sandbox session. A follow-up to an ended run, or the end of a wait, adds one to the same run.
CREATE TABLE executions (
  id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_uid          uuid NOT NULL REFERENCES runs (uid),
  seq              integer NOT NULL,               -- 1, 2, 3 … per run
  state            text NOT NULL CHECK (state IN ('QUEUED', 'OFFERED', 'CLAIMED', 'RUNNING', 'STOPPING', 'ENDED')),
  attempt          integer NOT NULL DEFAULT 0,     -- raised by each offer; the fencing token
  accepted_attempt integer NOT NULL DEFAULT 0,     -- newest accepted one; worker events of older ones are superseded
  setup_losses     integer NOT NULL DEFAULT 0,     -- workers lost before the agent started
  run_losses       integer NOT NULL DEFAULT 0,     -- workers lost afterwards
  lane_id          bigint NOT NULL REFERENCES lanes (id),
  depth            integer NOT NULL,               -- of the run: descendants are claimed before roots of the same owner
  worker_host      text,                           -- of the newest attempt
  sandbox_running  boolean NOT NULL DEFAULT false,
  outcome          text CHECK (outcome IN ('DONE', 'FAILED', 'BLOCKED', 'WAITING', 'CANCELLED', 'ERROR')),
  snapshot_key     text,                           -- workspace saved at its end
  queued_at        timestamptz(3) NOT NULL DEFAULT now(),
  claimed_at       timestamptz(3),
  started_at       timestamptz(3),                 -- the agent began, in the newest attempt
  stall_warned_at  timestamptz(3),
  ended_at         timestamptz(3),
  UNIQUE (run_uid, seq),
  CHECK ((state = 'ENDED') = (outcome IS NOT NULL))
) WITH (fillfactor = 80);
-- At most one execution of a run is wanted; one that is stopping may still be there when the next is queued.
CREATE UNIQUE INDEX executions_one_live ON executions (run_uid) WHERE state IN ('QUEUED', 'OFFERED', 'CLAIMED', 'RUNNING');
CREATE INDEX executions_stopping ON executions (run_uid) WHERE state = 'STOPPING';
-- Head and emptiness of a lane.
CREATE INDEX executions_queue ON executions (lane_id, depth DESC, id) WHERE state = 'QUEUED';

-- Who holds an execution now. Narrow and hot; no index on expires_at, so that renewing stays cheap.
CREATE TABLE leases (
  execution_id bigint PRIMARY KEY REFERENCES executions (id),
  attempt      integer NOT NULL,
  run_uid      uuid NOT NULL,
  session_uid  uuid NOT NULL,
  accepted     boolean NOT NULL,                   -- false: an open offer
  phase        text NOT NULL DEFAULT 'SETUP',      -- as last reported
  expires_at   timestamptz NOT NULL,
  fence_at     timestamptz                         -- stopping: tail events land until then
) WITH (fillfactor = 50);
CREATE INDEX leases_by_session ON leases (session_uid);

-- The gapless counter of a run's events, and which attempt may add to them.
CREATE TABLE run_streams (
  run_uid         uuid PRIMARY KEY REFERENCES runs (uid),
  last_seq        bigint NOT NULL DEFAULT 0,
  execution_id    bigint,                          -- null: only the orchestrator writes
  attempt         integer,
  last_client_seq bigint NOT NULL DEFAULT 0,
  last_worker_at  timestamptz(3)                   -- newest event of the worker, by our clock
) WITH (fillfactor = 50);

-- Everything that happened in a run. Append-only.
CREATE TABLE stream.run_events (
  run_uid      uuid NOT NULL,
  seq          bigint NOT NULL,
  uid          uuid NOT NULL,
  kind         text NOT NULL,
  occurred_at  timestamptz(3) NOT NULL,
  execution_id bigint,
  attempt      integer,                            -- null: written by the orchestrator
  payload      jsonb NOT NULL,
  PRIMARY KEY (run_uid, seq)
) PARTITION BY HASH (run_uid);
CREATE TABLE stream.run_events_0 PARTITION OF stream.run_events FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE stream.run_events_1 PARTITION OF stream.run_events FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE stream.run_events_2 PARTITION OF stream.run_events FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE stream.run_events_3 PARTITION OF stream.run_events FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE stream.run_events_4 PARTITION OF stream.run_events FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE stream.run_events_5 PARTITION OF stream.run_events FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE stream.run_events_6 PARTITION OF stream.run_events FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE stream.run_events_7 PARTITION OF stream.run_events FOR VALUES WITH (MODULUS 8, REMAINDER 7);

-- What an agent is told: the prompt, follow-ups, results of awaited children. Each is delivered once or reported undelivered.
CREATE TABLE messages (
  uid           uuid PRIMARY KEY,
  run_uid       uuid NOT NULL REFERENCES runs (uid),
  seq           integer NOT NULL,                  -- order within the run
  kind          text NOT NULL CHECK (kind IN ('prompt', 'followup', 'children')),
  text          text NOT NULL,
  mode          text NOT NULL,
  author_type   text NOT NULL,
  author_uid    text NOT NULL,
  execution_id  bigint REFERENCES executions (id), -- which execution took it
  taken_as      text CHECK (taken_as IN ('input', 'directive')),
  delivered_at  timestamptz(3),                    -- handed to the agent
  undeliverable boolean NOT NULL DEFAULT false,    -- its run ended first
  created_at    timestamptz(3) NOT NULL DEFAULT now(),
  UNIQUE (run_uid, seq)
);

-- What the worker of an execution is told, durably; seq counts per execution.
CREATE TABLE execution_directives (
  execution_id bigint NOT NULL REFERENCES executions (id),
  seq          integer NOT NULL,
  attempt      integer NOT NULL,
  kind         text NOT NULL CHECK (kind IN ('cancel', 'interrupt', 'followup', 'end_idle', 'drain')),
  payload      jsonb NOT NULL,
  created_at   timestamptz(3) NOT NULL DEFAULT now(),
  acked_at     timestamptz(3),
  PRIMARY KEY (execution_id, seq)
);

-- Runs whose turn ended to wait for children.
CREATE TABLE waits (
  run_uid    uuid PRIMARY KEY REFERENCES runs (uid),
  policy     text NOT NULL CHECK (policy IN ('all', 'any')),
  run_uids   uuid[] NOT NULL,                      -- the awaited children
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

-- Which ends of children a parent has been told; guarded by the parent's lock. A child that is continued ends once more.
CREATE TABLE reported_children (
  parent_run_uid  uuid NOT NULL REFERENCES runs (uid),
  child_run_uid   uuid NOT NULL REFERENCES runs (uid),
  execution_count integer NOT NULL,                -- of the child when it was told
  PRIMARY KEY (parent_run_uid, child_run_uid)
);

-- One row per worker process; it keeps its uid (and so its leases) when the process registers again.
CREATE TABLE worker_sessions (
  uid            uuid PRIMARY KEY,
  token_hash     bytea NOT NULL UNIQUE,
  expires_at     timestamptz(3) NOT NULL,
  key_uid        text NOT NULL,
  key_sealed     text NOT NULL,                    -- checked again with the identity service each minute
  key_checked_at timestamptz(3) NOT NULL,
  team_uid       uuid,                             -- null: serves every team's unrouted runs
  worker_host    text NOT NULL,
  instance_uid   text NOT NULL,
  version        text NOT NULL,
  backend        text NOT NULL,
  slots          integer NOT NULL,
  free_slots     integer NOT NULL,
  state          text NOT NULL CHECK (state IN ('READY', 'DRAINING')),
  labels         jsonb NOT NULL,
  harnesses      jsonb NOT NULL,                   -- [{type, version}]
  harness_types  text[] NOT NULL,
  models         text[] NOT NULL,
  sandbox        text NOT NULL,
  sandbox_features text[] NOT NULL,
  connected_at   timestamptz(3) NOT NULL,
  last_seen_at   timestamptz(3) NOT NULL,
  UNIQUE (key_uid, instance_uid)
) WITH (fillfactor = 70);
CREATE INDEX worker_sessions_by_team ON worker_sessions (team_uid);

-- Answers of creates, for 24 hours.
CREATE TABLE idempotency_keys (
  principal_uid text NOT NULL,
  operation     text NOT NULL,
  key           text NOT NULL,
  body_hash     bytea NOT NULL,
  answer        jsonb NOT NULL,
  created_at    timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (principal_uid, operation, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- When the reaper last looked. After a longer pause nobody could renew, so that look only extends leases.
CREATE TABLE reaper_ticks (
  only_row  boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  last_tick timestamptz NOT NULL
);
INSERT INTO reaper_ticks (last_tick) VALUES ('-infinity');
-- Tables of libs/events. A service's first migration contains this text verbatim.

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

-- Runs and their life cycle, conversations, artifacts, and the catalog. The columns of the tables of the catalog,
-- artifacts and budgets are explained in ../../schema.prisma; Prisma manages none of the tables of the life cycle.
--
-- Lock order, everywhere: runs (by uid) -> lanes -> capacity (by scope, uid) -> leases and run_streams. The row of a
-- run is its mutex: a transaction that changes a run, its executions, directives, messages or waits locks it first. A
-- heartbeat locks leases only, and appending events locks run_streams only. A claim locks lanes and capacity first and
-- then runs with SKIP LOCKED.

CREATE SCHEMA IF NOT EXISTS stream;
CREATE EXTENSION IF NOT EXISTS pg_trgm;

-- == Runs ==

CREATE TABLE runs (
  uid                uuid           PRIMARY KEY,
  root_run_uid       uuid           NOT NULL,
  parent_run_uid     uuid           REFERENCES runs (uid),
  depth              integer        NOT NULL,      -- 0 = root
  retry_of_run_uid   uuid           REFERENCES runs (uid),

  owner_type         text           NOT NULL CHECK (owner_type IN ('team', 'user')),
  owner_uid          uuid           NOT NULL,
  creator_type       text           NOT NULL,
  creator_uid        text           NOT NULL,
  executor_uid       text           NOT NULL,      -- the principal as which the run acts
  agent_uid          uuid,
  agent_name         text,
  factory_uid        uuid,
  definition_version bigint,
  environment_uid    text,
  conversation_uid   uuid           NOT NULL,
  session_uid        text,                         -- of the newest agent session

  title              text           NOT NULL,
  state              text           NOT NULL
    CHECK (state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS',
                     'SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED')),
  status_message     text,
  error_code         text,                         -- of the public catalog
  error_retryable    boolean,

  prompt             text           NOT NULL,      -- with context added by the service
  submitted_prompt   text,                         -- as submitted; follow-ups sent before the start are appended
  mode               text           NOT NULL,
  interactive        boolean        NOT NULL,
  source             text           NOT NULL,
  origin             text,                         -- 'dispatch' if a factory's dispatch created the run
  execution_location text           NOT NULL DEFAULT 'REMOTE' CHECK (execution_location IN ('REMOTE', 'LOCAL')),
  trigger_url        text,
  schedule           jsonb,
  config_name        text,                         -- agent_config.name, for the list filter
  model_id           text,
  skill_spec         text,
  agent_config       jsonb          NOT NULL,      -- public AgentConfigSnapshot, resolved
  agent_skill        jsonb,
  frozen             jsonb          NOT NULL,      -- all inputs of an execution; names of secrets, never their values
  metadata           jsonb          NOT NULL DEFAULT '{}',
  cause_key          text,                         -- unique per owner, permanently

  execution_count    integer        NOT NULL DEFAULT 1,
  run_time_ms        bigint         NOT NULL DEFAULT 0, -- of executions that have ended
  version            integer        NOT NULL DEFAULT 1, -- incremented by every change
  created_at         timestamptz(3) NOT NULL DEFAULT now(),
  updated_at         timestamptz(3) NOT NULL DEFAULT now(),
  started_at         timestamptz(3),
  finished_at        timestamptz(3)
);
CREATE UNIQUE INDEX runs_cause_key ON runs (owner_uid, cause_key)
  WHERE cause_key IS NOT NULL;

-- Lists of runs by their sort keys. A list is read along its order for some thousand runs, then by its filters.
CREATE INDEX runs_by_update ON runs (owner_uid, updated_at DESC, uid DESC);
CREATE INDEX runs_by_creation ON runs (owner_uid, created_at DESC, uid DESC);
CREATE INDEX runs_by_title ON runs (owner_uid, (lower(title) COLLATE "C") DESC, uid DESC);
-- Runs with and without a skill are read separately, each in both directions.
CREATE INDEX runs_by_skill ON runs (owner_uid, (skill_spec IS NULL), (skill_spec COLLATE "C") DESC, uid DESC);
-- Few runs change long after their creation. A bound on one of the two times skips the others in this index alone.
CREATE INDEX runs_updated_late_with_creation ON runs (owner_uid, updated_at DESC, uid DESC) INCLUDE (created_at)
  WHERE updated_at - created_at > interval '1 day';
CREATE INDEX runs_created_late_with_update ON runs (owner_uid, created_at DESC, uid DESC) INCLUDE (updated_at)
  WHERE updated_at - created_at > interval '1 day';

-- Runs of a tree, a conversation, an environment or a skill.
CREATE INDEX runs_by_parent ON runs (parent_run_uid)
  WHERE parent_run_uid IS NOT NULL;
CREATE INDEX runs_below_root ON runs (root_run_uid)
  WHERE parent_run_uid IS NOT NULL;
CREATE INDEX runs_by_conversation ON runs (conversation_uid, created_at DESC);
CREATE INDEX runs_by_owner_environment ON runs (owner_uid, environment_uid, created_at DESC, uid DESC)
  WHERE environment_uid IS NOT NULL;
CREATE INDEX runs_by_skill_newest ON runs (owner_uid, skill_spec, created_at DESC)
  WHERE skill_spec IS NOT NULL;
-- Tasks of a ticket. URLs are stored as submitted and compared without query, fragment and trailing slashes.
CREATE INDEX runs_by_ticket
  ON runs USING hash (lower(regexp_replace(btrim(metadata->>'ticket_url'), '/*([?#].*)?$', '')))
  WHERE metadata->>'ticket_url' IS NOT NULL AND parent_run_uid IS NULL;
-- Runs that start from a snapshot of another run, which is stored while one of them is active.
CREATE INDEX runs_by_borrowed_snapshot ON runs ((frozen #>> '{workspace,snapshot_key}'))
  WHERE frozen #>> '{workspace,snapshot_key}' IS NOT NULL;

-- Active runs. There are few of them.
CREATE INDEX runs_by_state ON runs (owner_uid, state)
  WHERE state <> 'SUCCEEDED';
CREATE INDEX runs_active_by_root ON runs (root_run_uid)
  WHERE state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS');
CREATE INDEX runs_active_by_factory ON runs (factory_uid)
  WHERE state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS') AND factory_uid IS NOT NULL;
CREATE INDEX runs_active_by_agent ON runs (agent_uid)
  WHERE state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS') AND agent_uid IS NOT NULL;
CREATE INDEX runs_local ON runs (owner_uid)
  WHERE execution_location = 'LOCAL';

-- Filters of lists. A run is updated at least five times and every update writes all its index entries, so it is added
-- to these indexes once, when it has ended. Until then `runs_by_state` finds it. The state is part of each, because it
-- is asked for together with the others and PostgreSQL does not combine two indexes that begin with the same owner.
CREATE INDEX runs_ended_by_factory ON runs (owner_uid, factory_uid, state)
  WHERE factory_uid IS NOT NULL AND state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX runs_ended_by_name ON runs (owner_uid, config_name, state)
  WHERE config_name IS NOT NULL AND state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX runs_ended_by_model ON runs (owner_uid, model_id, state)
  WHERE state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX runs_ended_by_creator ON runs (owner_uid, creator_uid, state)
  WHERE state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX runs_ended_by_executor ON runs (owner_uid, executor_uid, state)
  WHERE state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX runs_ended_by_source ON runs (owner_uid, source, state)
  WHERE state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX runs_ended_by_environment ON runs (owner_uid, environment_uid, state)
  WHERE state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX runs_ended_by_schedule ON runs (owner_uid, (schedule->>'schedule_id'), state)
  WHERE schedule IS NOT NULL AND state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX runs_ended_by_skill ON runs (owner_uid, (skill_spec COLLATE "C"), state)
  WHERE skill_spec IS NOT NULL AND state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX runs_ended_by_metadata ON runs USING gin (metadata jsonb_path_ops)
  WHERE metadata <> '{}' AND state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');

-- The frequency of a value decides which plan is shorter. It is estimated for some hundred values per column, and for
-- an expression that has no column.
ALTER TABLE runs
  ALTER COLUMN factory_uid     SET STATISTICS 400,
  ALTER COLUMN config_name     SET STATISTICS 400,
  ALTER COLUMN model_id        SET STATISTICS 400,
  ALTER COLUMN creator_uid     SET STATISTICS 400,
  ALTER COLUMN executor_uid    SET STATISTICS 400,
  ALTER COLUMN environment_uid SET STATISTICS 400,
  ALTER COLUMN skill_spec      SET STATISTICS 400;
CREATE STATISTICS runs_schedule ON (schedule->>'schedule_id') FROM runs;
ALTER STATISTICS runs_schedule SET STATISTICS 400;

-- The text that `q` searches, in a row that never changes: runs are updated several times, and each update would write
-- all their trigrams again. The other columns sort the matches without reading their runs.
CREATE TABLE run_texts (
  run_uid    uuid           PRIMARY KEY, -- of runs, which are never deleted
  owner_uid  uuid           NOT NULL,
  created_at timestamptz(3) NOT NULL,
  title      text           NOT NULL,
  skill_spec text,
  text       text           NOT NULL     -- in lower case: title, skill, and the beginning of the prompt
);
-- New entries are merged in batches. The batches are small, because the transaction that fills one merges it.
CREATE INDEX run_texts_trigrams ON run_texts USING gin (text gin_trgm_ops) WITH (gin_pending_list_limit = 512);

CREATE FUNCTION run_text(title text, skill_spec text, prompt text) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN lower(title || E'\n' || coalesce(skill_spec, '') || E'\n' || left(prompt, 10000));

CREATE FUNCTION insert_run_texts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_texts (run_uid, owner_uid, created_at, title, skill_spec, text)
    SELECT uid, owner_uid, created_at, title, skill_spec, run_text(title, skill_spec, prompt) FROM new_rows;
  RETURN NULL;
END $$;
CREATE TRIGGER run_texts_of_new AFTER INSERT ON runs
  REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION insert_run_texts();

-- Texts of runs that may have a word similar to the one that `q` asks for, newest first. The caller compares the
-- candidates word by word. A function, because the operator's threshold is a setting; this one finds a word of four
-- letters with one typo. The setting exists once the extension's library is loaded.
SELECT show_trgm('');
CREATE FUNCTION similar_run_texts(owners uuid[], word text, max_rows integer) RETURNS TABLE (uid uuid, text text)
  LANGUAGE sql STABLE
  SET pg_trgm.word_similarity_threshold = 0.33 AS $$
  SELECT t.run_uid, t.text
    FROM run_texts t
   WHERE t.owner_uid = ANY(owners)
     AND t.text %> word
   ORDER BY t.created_at DESC, t.run_uid DESC
   LIMIT max_rows
$$;

-- Factories that are being, or have been, deleted: they get no new runs. See closed-factory-store.ts.
CREATE TABLE closed_factories (
  factory_uid uuid           PRIMARY KEY,
  closed_at   timestamptz(3) NOT NULL DEFAULT now()
);

-- == The queue ==

-- Queued executions that the same workers could run under the same limits. Inserted if missing, never updated.
CREATE TABLE lanes (
  id               bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner_type       text    NOT NULL,
  owner_uid        uuid    NOT NULL,
  agent_uid        uuid,
  factory_uid      uuid,
  worker_host      text,   -- only workers with this id may run it; null = any
  harness          text    NOT NULL,
  image            text,   -- null = any worker
  arch             text,   -- null = any worker
  is_background    boolean NOT NULL DEFAULT false, -- judges and trials, which wait behind the runs of people
  -- No claim reads the lane while this budget is exhausted (budget-lanes.ts). No foreign key: deleting the budget
  -- releases the executions.
  waits_for_budget uuid,
  CONSTRAINT lanes_key UNIQUE NULLS NOT DISTINCT
    (owner_uid, agent_uid, factory_uid, worker_host, harness, image, arch, is_background, waits_for_budget)
);
CREATE INDEX lanes_waiting_for_budget ON lanes (waits_for_budget)
  WHERE waits_for_budget IS NOT NULL;

-- The number of concurrent executions and its limit. Owners (team, user) also have their share of the queue.
CREATE TABLE capacity (
  scope            text             NOT NULL CHECK (scope IN ('agent', 'factory', 'team', 'user')),
  uid              uuid             NOT NULL,
  in_use           integer          NOT NULL DEFAULT 0 CHECK (in_use >= 0),
  in_use_max       integer          NOT NULL CHECK (in_use_max > 0),
  virtual_time     double precision NOT NULL DEFAULT 0, -- increased by 1 / weight per claim
  last_start       double precision NOT NULL DEFAULT 0, -- virtual start of the newest claim; the maximum is the clock
  weight           double precision NOT NULL DEFAULT 1 CHECK (weight > 0),
  paused           boolean          NOT NULL DEFAULT false, -- nothing new is offered
  priority         integer          NOT NULL DEFAULT 0, -- of an agent, among the runs of its owner
  settings_version bigint           NOT NULL DEFAULT 0, -- of the record with the settings; older ones are ignored
  PRIMARY KEY (scope, uid)
) WITH (fillfactor = 70);
CREATE INDEX capacity_clock ON capacity (last_start DESC)
  WHERE scope IN ('team', 'user');

-- One sandbox session. A follow-up to an ended run, or the end of a wait, adds an execution to the same run.
CREATE TABLE executions (
  id                    bigint           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_uid               uuid             NOT NULL REFERENCES runs (uid),
  seq                   integer          NOT NULL,           -- 1, 2, 3 … per run
  state                 text             NOT NULL
    CHECK (state IN ('QUEUED', 'OFFERED', 'CLAIMED', 'RUNNING', 'STOPPING', 'DEBUG', 'ENDED')),
  lane_id               bigint           NOT NULL REFERENCES lanes (id),
  depth                 integer          NOT NULL,           -- of the run; descendants are claimed before roots
  is_local              boolean          NOT NULL DEFAULT false, -- executed by a client, which its lease names
  attempt               integer          NOT NULL DEFAULT 0, -- incremented by each offer; the fencing token
  accepted_attempt      integer          NOT NULL DEFAULT 0, -- newest accepted; events of older ones are superseded
  retained_attempts     integer[]        NOT NULL DEFAULT '{}', -- lost attempts whose events count nevertheless
  setup_losses          integer          NOT NULL DEFAULT 0, -- workers lost before the agent started
  run_losses            integer          NOT NULL DEFAULT 0, -- workers lost afterwards
  worker_host           text,                                -- of the newest attempt
  sandbox_running       boolean          NOT NULL DEFAULT false,
  sandbox_vcpus         double precision,                    -- limits that the worker reports; null = not reported
  sandbox_memory_gb     double precision,
  outcome               text
    CHECK (outcome IN ('DONE', 'FAILED', 'BLOCKED', 'WAITING', 'CANCELLED', 'ERROR')),

  snapshot_key          text,                                -- workspace saved at the end
  checkpoint_key        text,                                -- saved between steps; a retry starts from it
  workspace_unchanged   boolean          NOT NULL DEFAULT false, -- ended without a snapshot: a judge clones again
  parked_session_uid    uuid,                                -- the worker that retains the workspace after the end
  parked_until          timestamptz(3),
  preferred_session_uid uuid,                                -- queued: the worker that retains the workspace
  preferred_until       timestamptz(3),                      -- until then others leave the execution to that worker

  traceparent           text,                                -- W3C trace context for the worker and the run's events
  queued_at             timestamptz(3)   NOT NULL DEFAULT now(),
  claimed_at            timestamptz(3),
  started_at            timestamptz(3),                      -- the agent started, in the newest attempt
  stall_warned_at       timestamptz(3),
  debug_since           timestamptz(3),                      -- DEBUG: setup failed; workspace and shell are retained
  debug_until           timestamptz(3),
  ended_at              timestamptz(3),
  UNIQUE (run_uid, seq),
  CHECK ((state = 'ENDED') = (outcome IS NOT NULL))
) WITH (fillfactor = 80);
-- A run has at most one active execution. One that is stopping may still exist when the next is queued.
CREATE UNIQUE INDEX executions_one_active ON executions (run_uid)
  WHERE state IN ('QUEUED', 'OFFERED', 'CLAIMED', 'RUNNING');
CREATE INDEX executions_stopping ON executions (run_uid)
  WHERE state = 'STOPPING';
-- The first execution of a lane, and whether it has one.
CREATE INDEX executions_queue ON executions (lane_id, depth DESC, id)
  WHERE state = 'QUEUED';

-- The current owner of an execution. Narrow and frequently updated: without an index on expires_at renewals are cheap.
CREATE TABLE leases (
  execution_id   bigint      PRIMARY KEY REFERENCES executions (id),
  attempt        integer     NOT NULL,
  run_uid        uuid        NOT NULL,
  session_uid    uuid        NOT NULL,
  dispatcher_uid uuid,       -- the worker that took the execution to have another machine run it
  offer_hash     bytea,      -- of the token with which one worker process takes over a dispatched lease
  accepted       boolean     NOT NULL, -- false: an open offer
  phase          text        NOT NULL DEFAULT 'SETUP', -- as last reported
  expires_at     timestamptz NOT NULL,
  fence_at       timestamptz -- stopping: the last events are accepted until then
) WITH (fillfactor = 50);
CREATE INDEX leases_by_session ON leases (session_uid);

-- When the reaper last ran. After a longer pause no worker could renew, so its next run only extends leases.
CREATE TABLE reaper_ticks (
  only_row  boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
  last_tick timestamptz NOT NULL
);
INSERT INTO reaper_ticks (last_tick) VALUES ('-infinity');

-- One row per worker process. It has the same uid, and therefore its leases, when the process registers again.
CREATE TABLE worker_sessions (
  uid              uuid           PRIMARY KEY,
  token_hash       bytea          NOT NULL UNIQUE,
  expires_at       timestamptz(3) NOT NULL,
  key_uid          text           NOT NULL,
  key_sealed       text           NOT NULL, -- checked again with the identity service every minute
  key_checked_at   timestamptz(3) NOT NULL,
  team_uid         uuid,                    -- null: serves the unrouted runs of every team
  worker_host      text           NOT NULL,
  instance_uid     text           NOT NULL,
  version          text           NOT NULL,
  backend          text           NOT NULL,
  slots            integer        NOT NULL,
  free_slots       integer        NOT NULL,
  state            text           NOT NULL CHECK (state IN ('READY', 'DRAINING')),
  labels           jsonb          NOT NULL,
  harnesses        jsonb          NOT NULL, -- [{type, version}]
  harness_types    text[]         NOT NULL,
  models           text[]         NOT NULL,
  skills           jsonb          NOT NULL DEFAULT '[]', -- on the worker's machine; listed while connected
  images           text[]         NOT NULL DEFAULT '{}', -- empty = any
  arch             text           NOT NULL DEFAULT '',   -- '' = any
  sandbox          text           NOT NULL,
  sandbox_features text[]         NOT NULL,
  connected_at     timestamptz(3) NOT NULL,
  last_seen_at     timestamptz(3) NOT NULL,
  UNIQUE (key_uid, instance_uid)
) WITH (fillfactor = 70);
CREATE INDEX worker_sessions_by_team ON worker_sessions (team_uid);

-- == Events and messages of runs ==

-- The gapless counter of a run's events, and the attempt that may append to them.
CREATE TABLE run_streams (
  run_uid         uuid           PRIMARY KEY REFERENCES runs (uid),
  last_seq        bigint         NOT NULL DEFAULT 0,
  execution_id    bigint,        -- null: only the orchestrator appends
  attempt         integer,
  last_client_seq bigint         NOT NULL DEFAULT 0,
  last_worker_at  timestamptz(3) -- newest event of the worker, by the database's clock
) WITH (fillfactor = 50);

-- All events of a run. Append-only.
CREATE TABLE stream.run_events (
  run_uid      uuid           NOT NULL,
  seq          bigint         NOT NULL,
  uid          uuid           NOT NULL,
  kind         text           NOT NULL,
  occurred_at  timestamptz(3) NOT NULL,
  execution_id bigint,
  attempt      integer,       -- null: written by the orchestrator
  payload      jsonb          NOT NULL,
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

-- Messages to the agent: the prompt, follow-ups, results of awaited children. Each is delivered once or reported as
-- undeliverable.
CREATE TABLE messages (
  uid                  uuid           PRIMARY KEY,
  run_uid              uuid           NOT NULL REFERENCES runs (uid),
  seq                  integer        NOT NULL, -- order within the run
  kind                 text           NOT NULL CHECK (kind IN ('prompt', 'followup', 'children')),
  text                 text           NOT NULL,
  mode                 text           NOT NULL,
  author_type          text           NOT NULL,
  author_uid           text           NOT NULL,
  by_person            boolean,       -- and not by a run or service in that person's name; null = not recorded
  execution_id         bigint         REFERENCES executions (id), -- the execution that took it
  taken_as             text           CHECK (taken_as IN ('input', 'directive')),
  delivered_at         timestamptz(3), -- when the agent received it
  undeliverable        boolean        NOT NULL DEFAULT false, -- its run ended first
  undeliverable_reason text,          -- such as run_cancelled
  created_at           timestamptz(3) NOT NULL DEFAULT now(),
  UNIQUE (run_uid, seq)
);

-- Files attached to messages. The bytes are in the blob store, under the uid.
CREATE TABLE message_attachments (
  message_uid uuid    NOT NULL REFERENCES messages (uid),
  seq         integer NOT NULL, -- order within the message
  uid         uuid    NOT NULL,
  file_name   text    NOT NULL,
  mime_type   text    NOT NULL,
  size_bytes  bigint  NOT NULL,
  sha256      text    NOT NULL,
  PRIMARY KEY (message_uid, seq)
);
-- The message of a stored file.
CREATE INDEX message_attachments_by_uid ON message_attachments (uid);

-- Files announced for follow-ups of a run. Their bytes are uploaded to a separate place and copied at their first use,
-- so that a late upload cannot change a file that an agent was given.
CREATE TABLE prepared_attachments (
  uid        uuid           PRIMARY KEY,
  run_uid    uuid           NOT NULL REFERENCES runs (uid), -- only its follow-ups may name the file
  file_name  text           NOT NULL,
  mime_type  text           NOT NULL,
  size_bytes bigint,        -- null: not used yet
  sha256     text,
  created_at timestamptz(3) NOT NULL DEFAULT now()
);
CREATE INDEX prepared_attachments_by_age ON prepared_attachments (created_at);

-- Durable instructions to the worker of an execution; seq counts per execution.
CREATE TABLE execution_directives (
  execution_id bigint         NOT NULL REFERENCES executions (id),
  seq          integer        NOT NULL,
  attempt      integer        NOT NULL,
  kind         text           NOT NULL CHECK (kind IN ('cancel', 'interrupt', 'followup', 'end_idle', 'drain')),
  payload      jsonb          NOT NULL,
  created_at   timestamptz(3) NOT NULL DEFAULT now(),
  acked_at     timestamptz(3),
  PRIMARY KEY (execution_id, seq)
);

-- Runs whose turn ended in order to wait for children.
CREATE TABLE waits (
  run_uid    uuid           PRIMARY KEY REFERENCES runs (uid),
  policy     text           NOT NULL CHECK (policy IN ('all', 'any')),
  run_uids   uuid[]         NOT NULL, -- the awaited children
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

-- Ends of children that were reported to their parent, under the parent's lock. A child that is continued ends again.
CREATE TABLE reported_children (
  parent_run_uid  uuid    NOT NULL REFERENCES runs (uid),
  child_run_uid   uuid    NOT NULL REFERENCES runs (uid),
  execution_count integer NOT NULL, -- of the child at the time of the report
  PRIMARY KEY (parent_run_uid, child_run_uid)
);

-- == Artifacts ==

CREATE TABLE artifacts (
  uid                uuid           PRIMARY KEY,
  run_uid            uuid           NOT NULL,
  client_artifact_id text           NOT NULL,
  execution_id       bigint         NOT NULL,
  artifact_type      text           NOT NULL
    CONSTRAINT artifacts_type
    CHECK (artifact_type IN ('PLAN', 'PULL_REQUEST', 'SCREENSHOT', 'FILE', 'EXTERNAL_REFERENCE')),
  data               jsonb          NOT NULL,
  content            text,
  blob_key           text,
  size_bytes         bigint,
  sha256             text,
  public             boolean        NOT NULL DEFAULT false,
  created_at         timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  committed_at       timestamptz(3)
);
-- An artifact is stored once, however often the worker reports it.
CREATE UNIQUE INDEX artifacts_client_id ON artifacts (run_uid, client_artifact_id);
CREATE INDEX artifacts_by_type ON artifacts (artifact_type, run_uid)
  WHERE committed_at IS NOT NULL;
-- Announced uploads that were not committed; deleted after a day.
CREATE INDEX artifacts_uncommitted ON artifacts (created_at)
  WHERE committed_at IS NULL;
-- The runs that reported a URL or opened a pull request. Hashes, because URLs are long.
CREATE INDEX artifacts_by_reference ON artifacts USING hash ((data->>'url'))
  WHERE artifact_type = 'EXTERNAL_REFERENCE';
CREATE INDEX artifacts_by_pull_request ON artifacts USING hash ((data->>'url'))
  WHERE artifact_type = 'PULL_REQUEST';

-- Opened by the orchestrator, never by the sandbox.
CREATE TABLE pull_requests (
  uid           uuid           PRIMARY KEY,
  run_uid       uuid           NOT NULL,
  code_host_uid uuid           NOT NULL,
  kind          text           NOT NULL,
  owner         text           NOT NULL,
  repo          text           NOT NULL,
  number        integer        NOT NULL,
  url           text           NOT NULL,
  title         text           NOT NULL,
  body          text           NOT NULL,
  head_branch   text           NOT NULL,
  base_branch   text           NOT NULL,
  head_sha      text           NOT NULL,
  base_sha      text           NOT NULL DEFAULT '',
  status        text           NOT NULL,
  artifact_uid  uuid           NOT NULL,
  additions     integer,
  deletions     integer,
  changed_files integer,
  num_commits   integer,
  created_at    timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
-- A run has one pull request per repository and branch.
CREATE UNIQUE INDEX pull_requests_head ON pull_requests (run_uid, owner, repo, head_branch);
CREATE INDEX pull_requests_by_artifact ON pull_requests (artifact_uid);

CREATE TABLE local_pull_request_counters (
  code_host_uid uuid    NOT NULL,
  owner         text    NOT NULL,
  repo          text    NOT NULL,
  last_number   integer NOT NULL,
  PRIMARY KEY (code_host_uid, owner, repo)
);

CREATE TABLE snapshots (
  snapshot_key text           PRIMARY KEY,
  uid          uuid           NOT NULL DEFAULT gen_random_uuid(), -- its name in the public API
  run_uid      uuid           NOT NULL,
  execution_id bigint         NOT NULL,
  attempt      integer        NOT NULL,
  size_bytes   bigint         NOT NULL,
  created_at   timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX snapshots_by_run ON snapshots (run_uid, created_at);
CREATE INDEX snapshots_by_execution ON snapshots (execution_id);

CREATE TABLE transcripts (
  run_uid    uuid           PRIMARY KEY,
  blob_key   text           NOT NULL,
  last_seq   bigint         NOT NULL,
  written_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE harness_transcripts (
  run_uid    uuid           PRIMARY KEY,
  blob_key   text           NOT NULL,
  written_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- The newest rendering of the command outputs of a conversation, per owner of runs in it.
CREATE TABLE block_snapshots (
  conversation_uid uuid           NOT NULL,
  owner_type       text           NOT NULL,
  owner_uid        uuid           NOT NULL,
  blob_key         text           NOT NULL,
  extent           bigint         NOT NULL, -- number of events of all runs in it; never decreases
  written_at       timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (conversation_uid, owner_type, owner_uid)
);

-- == Costs ==

CREATE TABLE model_prices (
  model_id                       text           NOT NULL,
  version                        integer        NOT NULL,
  input_per_million_micros       bigint         NOT NULL,
  output_per_million_micros      bigint         NOT NULL,
  cache_read_per_million_micros  bigint,
  cache_write_per_million_micros bigint,
  effective_from                 timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  created_at                     timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  created_by_type                text,
  created_by_uid                 uuid,
  PRIMARY KEY (model_id, version)
);
-- List prices of the providers' pages, of models with one price for every request. Models priced by the length of the
-- prompt have no price, so their cost stays unknown. A cache write is one of five minutes.
INSERT INTO model_prices
  (model_id, version, input_per_million_micros, output_per_million_micros,
   cache_read_per_million_micros, cache_write_per_million_micros)
VALUES
  ('scripted',          1,       0,        0,   NULL,    NULL),
  ('claude-opus-5-5',   1, 4000000, 20000000, 200000, 5000000),
  ('claude-sonnet-5-5', 1, 2000000, 10000000, 200000, 2500000),
  ('claude-opus-4-5',   1, 5000000, 25000000, 500000, 6250000),
  ('claude-sonnet-4-5', 1, 3000000, 15000000, 300000, 3750000),
  ('claude-haiku-4-5',  1, 1000000,  5000000, 100000, 1250000),
  ('gpt-5.1',           1, 1250000, 10000000, 125000,    NULL),
  ('gpt-5-mini',        1,  250000,  2000000,  25000,    NULL);

CREATE TABLE usage_rows (
  run_uid            uuid           NOT NULL,
  call_id            text           NOT NULL,
  execution_id       bigint         NOT NULL,
  attempt            integer        NOT NULL,
  model_id           text           NOT NULL,
  input_tokens       bigint,
  output_tokens      bigint,
  cache_read_tokens  bigint,
  cache_write_tokens bigint,
  cost_micros        bigint,
  price_version      integer,
  access             text,
  recorded_at        timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (run_uid, call_id)
);

CREATE TABLE compute_intervals (
  run_uid      uuid             NOT NULL,
  execution_id bigint           NOT NULL,
  attempt      integer          NOT NULL,
  started_at   timestamptz(3)   NOT NULL,
  ended_at     timestamptz(3)   NOT NULL,
  vcpus        double precision NOT NULL,
  memory_gb    double precision NOT NULL,
  PRIMARY KEY (run_uid, execution_id, attempt),
  CONSTRAINT compute_intervals_order CHECK (ended_at >= started_at)
);

-- The root of a run decides which budgets cover its whole tree. The row of a budget is its mutex: reservations and
-- usage lock the budgets concerned by uid, after the run.
CREATE TABLE budgets (
  uid                uuid           PRIMARY KEY,
  team_uid           uuid           NOT NULL,
  scope              text           NOT NULL CHECK (scope IN ('team', 'factory', 'schedule', 'automation')),
  scope_uid          uuid           NOT NULL, -- of scope team: the team
  period             text           NOT NULL CHECK (period IN ('day', 'week', 'month', 'total')),
  limit_micros       bigint         NOT NULL CHECK (limit_micros > 0),
  thresholds_percent integer[]      NOT NULL DEFAULT '{50,80,100}',
  exhausted_until    timestamptz(3), -- start of the next period, or infinity; null or past: not exhausted
  version            bigint         NOT NULL DEFAULT 1,
  created_at         timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at         timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT budgets_once UNIQUE (team_uid, scope, scope_uid, period)
);
CREATE INDEX budgets_exhausted ON budgets (team_uid)
  WHERE exhausted_until IS NOT NULL;

-- Running sums, updated in the transaction that records the usage of a call.
CREATE TABLE budget_periods (
  budget_uid         uuid           NOT NULL REFERENCES budgets (uid) ON DELETE CASCADE,
  period_start       timestamptz(3) NOT NULL,
  spent_micros       bigint         NOT NULL DEFAULT 0,
  thresholds_reached integer[]      NOT NULL DEFAULT '{}', -- already published, once each
  PRIMARY KEY (budget_uid, period_start)
) WITH (fillfactor = 50);

-- The maximum cost of model calls in progress, for runs with a cost limit. An execution makes one call at a time.
CREATE TABLE cost_reservations (
  execution_id bigint         PRIMARY KEY,
  run_uid      uuid           NOT NULL,
  attempt      integer        NOT NULL,
  micros       bigint         NOT NULL,
  team_uid     uuid,
  scopes       text[]         NOT NULL DEFAULT '{}',
  reserved_at  timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX cost_reservations_by_run ON cost_reservations (run_uid);
CREATE INDEX cost_reservations_by_team ON cost_reservations (team_uid)
  WHERE team_uid IS NOT NULL;

-- == Catalog ==

CREATE TABLE environments (
  uid             text           PRIMARY KEY,
  owner_type      text           NOT NULL CONSTRAINT environments_owner_type CHECK (owner_type IN ('team', 'user')),
  owner_uid       uuid           NOT NULL,
  name            text           NOT NULL,
  config          jsonb          NOT NULL,
  creator_uid     text           NOT NULL,
  last_editor_uid text           NOT NULL,
  link_sharing    boolean        NOT NULL DEFAULT false,
  created_at      timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at      timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
-- The environments of an owner, newest update first.
CREATE INDEX environments_by_owner ON environments (owner_type, owner_uid, updated_at DESC, uid);

CREATE TABLE environment_grants (
  uid             uuid           PRIMARY KEY,
  environment_uid text           NOT NULL,
  grantee_type    text           NOT NULL CHECK (grantee_type IN ('team', 'user')),
  grantee_uid     uuid           NOT NULL,
  is_link         boolean        NOT NULL DEFAULT false,
  creator_uid     text           NOT NULL,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  CONSTRAINT environment_grants_environment
    FOREIGN KEY (environment_uid) REFERENCES environments (uid) ON DELETE CASCADE
);
CREATE UNIQUE INDEX environment_grants_grantee ON environment_grants (environment_uid, grantee_type, grantee_uid);
CREATE INDEX environment_grants_by_grantee ON environment_grants (grantee_type, grantee_uid);

CREATE TABLE code_hosts (
  uid         uuid           PRIMARY KEY,
  team_uid    uuid           NOT NULL,
  name        text           NOT NULL,
  kind        text           NOT NULL CONSTRAINT code_hosts_kind CHECK (kind IN ('github', 'gitlab', 'local')),
  base_url    text           NOT NULL DEFAULT '',
  root        text           NOT NULL DEFAULT '',
  secret_name text           NOT NULL DEFAULT '',
  owners      text[]         NOT NULL DEFAULT '{}',
  created_at  timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE UNIQUE INDEX code_hosts_name ON code_hosts (team_uid, name);

-- This service's part of a version of a factory definition. It is stored as long as a dispatch may name the version.
CREATE TABLE definition_stages (
  factory_uid  uuid           NOT NULL,
  version      bigint         NOT NULL,
  team_uid     uuid           NOT NULL,
  repositories jsonb          NOT NULL,
  staged_at    timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (factory_uid, version)
);

CREATE TABLE active_definitions (
  factory_uid  uuid           PRIMARY KEY,
  version      bigint         NOT NULL,
  activated_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE runners (
  factory_uid    uuid    NOT NULL,
  version        bigint  NOT NULL,
  name           text    NOT NULL,
  uid            uuid    NOT NULL,
  description    text    NOT NULL DEFAULT '',
  setup_commands text[]  NOT NULL DEFAULT '{}',
  docker_image   text    NOT NULL DEFAULT '',
  os             text    NOT NULL DEFAULT 'linux',
  arch           text    NOT NULL DEFAULT '',
  vcpus          integer,
  memory_gb      integer,
  PRIMARY KEY (factory_uid, version, name),
  CONSTRAINT runners_stage
    FOREIGN KEY (factory_uid, version) REFERENCES definition_stages (factory_uid, version) ON DELETE CASCADE
);
-- A request names a runner by uid.
CREATE INDEX runners_by_uid ON runners (uid, version DESC);

CREATE TABLE skills (
  factory_uid uuid   NOT NULL,
  version     bigint NOT NULL,
  path        text   NOT NULL,
  name        text   NOT NULL,
  agent       text   NOT NULL DEFAULT '',
  description text   NOT NULL DEFAULT '',
  body        text   NOT NULL DEFAULT '',
  error       text   NOT NULL DEFAULT '',
  PRIMARY KEY (factory_uid, version, path),
  CONSTRAINT skills_stage
    FOREIGN KEY (factory_uid, version) REFERENCES definition_stages (factory_uid, version) ON DELETE CASCADE
);

-- The skills of a repository when it was last read for an owner, with that owner's access to it.
CREATE TABLE repository_skills (
  owner_type text           NOT NULL,
  owner_uid  uuid           NOT NULL,
  repository text           NOT NULL, -- owner/repo, in lower case
  skills     jsonb          NOT NULL,
  failure    text           NOT NULL DEFAULT '',
  read_at    timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (owner_type, owner_uid, repository)
);

-- First responses to idempotency keys, for 24 hours.
CREATE TABLE idempotency_keys (
  principal_uid text           NOT NULL,
  operation     text           NOT NULL,
  key           text           NOT NULL,
  body_hash     bytea          NOT NULL,
  response      jsonb          NOT NULL,
  created_at    timestamptz(3) NOT NULL DEFAULT now(),
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

-- Events of the runs of a team, in the order of the log.
CREATE INDEX event_log_runs_by_team ON stream.event_log (team_uid, position)
  WHERE entity = 'run';

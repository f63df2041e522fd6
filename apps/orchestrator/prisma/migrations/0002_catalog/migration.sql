-- What runs use (environments, code hosts, runners, skills, models' prices) and what they leave behind (artifacts,
-- pull requests, usage, snapshots, transcripts). Aggregates in Prisma: environments, code_hosts. The others are SQL,
-- because they are written in the transactions of runs.

-- Sandbox set-ups by name, owned by a team or a user. `config` is EnvironmentConfig (fields-runs §8.3).
CREATE TABLE environments (
  uid             text           PRIMARY KEY,
  owner_type      text           NOT NULL CONSTRAINT environments_owner_type CHECK (owner_type IN ('team', 'user')),
  owner_uid       uuid           NOT NULL,
  name            text           NOT NULL,
  config          jsonb          NOT NULL,
  creator_uid     text           NOT NULL,
  last_editor_uid text           NOT NULL,
  created_at      timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at      timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
-- The list of an owner, newest update first.
CREATE INDEX environments_by_owner ON environments (owner_type, owner_uid, updated_at DESC, uid);

-- When an environment was last used, and how that went.
CREATE INDEX runs_by_environment ON runs (environment_uid, created_at DESC, uid DESC) WHERE environment_uid IS NOT NULL;

-- How a team's repositories are reached, and where their pull requests are opened.
CREATE TABLE code_hosts (
  uid         uuid           PRIMARY KEY,
  team_uid    uuid           NOT NULL,
  name        text           NOT NULL,
  kind        text           NOT NULL CONSTRAINT code_hosts_kind CHECK (kind IN ('github', 'local')),
  base_url    text           NOT NULL DEFAULT '',
  root        text           NOT NULL DEFAULT '',
  secret_name text           NOT NULL DEFAULT '',
  owners      text[]         NOT NULL DEFAULT '{}',
  created_at  timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE UNIQUE INDEX code_hosts_name ON code_hosts (team_uid, name);

-- This service's part of a version of a factory definition: inert until active, kept as long as a dispatch may name it.
CREATE TABLE definition_stages (
  factory_uid  uuid           NOT NULL,
  version      bigint         NOT NULL,
  team_uid     uuid           NOT NULL,
  repositories jsonb          NOT NULL,
  staged_at    timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (factory_uid, version)
);

-- The version in force; moves forward only.
CREATE TABLE active_definitions (
  factory_uid  uuid           PRIMARY KEY,
  version      bigint         NOT NULL,
  activated_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- Machines that agents run on, by name in one version. `uid` stays the same over versions while the name lives.
CREATE TABLE runners (
  factory_uid    uuid    NOT NULL,
  version        bigint  NOT NULL,
  name           text    NOT NULL,
  uid            uuid    NOT NULL,
  description    text    NOT NULL DEFAULT '',
  setup_commands text[]  NOT NULL DEFAULT '{}',
  docker_image   text    NOT NULL DEFAULT '',
  os             text    NOT NULL DEFAULT 'linux',
  arch           text    NOT NULL DEFAULT 'x86_64',
  vcpus          integer,
  memory_gb      integer,
  PRIMARY KEY (factory_uid, version, name),
  CONSTRAINT runners_stage FOREIGN KEY (factory_uid, version) REFERENCES definition_stages (factory_uid, version) ON DELETE CASCADE
);
-- A request names a runner by uid.
CREATE INDEX runners_by_uid ON runners (uid, version DESC);

-- Procedures that agents can follow, by path in one version. `agent` empty: of every agent.
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
  CONSTRAINT skills_stage FOREIGN KEY (factory_uid, version) REFERENCES definition_stages (factory_uid, version) ON DELETE CASCADE
);

-- Micro-dollars per million tokens. A new price is a new version; usage keeps the version it was priced with.
CREATE TABLE model_prices (
  model_id                       text           NOT NULL,
  version                        integer        NOT NULL,
  input_per_million_micros       bigint         NOT NULL,
  output_per_million_micros      bigint         NOT NULL,
  cache_read_per_million_micros  bigint,
  cache_write_per_million_micros bigint,
  effective_from                 timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (model_id, version)
);
INSERT INTO model_prices (model_id, version, input_per_million_micros, output_per_million_micros) VALUES ('scripted', 1, 0, 0);

-- One row per model call, once. An absent count was not measured; an absent cost has no known price.
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
  recorded_at        timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY (run_uid, call_id)
);

-- What a run leaves behind. `data` holds the public facts of its type; bytes are in the blob store, a plan's text is here.
CREATE TABLE artifacts (
  uid                uuid           PRIMARY KEY,
  run_uid            uuid           NOT NULL,
  client_artifact_id text           NOT NULL,
  execution_id       bigint         NOT NULL,
  artifact_type      text           NOT NULL
    CONSTRAINT artifacts_type CHECK (artifact_type IN ('PLAN', 'PULL_REQUEST', 'SCREENSHOT', 'FILE', 'EXTERNAL_REFERENCE')),
  data               jsonb          NOT NULL,
  content            text,
  blob_key           text,
  size_bytes         bigint,
  sha256             text,
  public             boolean        NOT NULL DEFAULT false,
  created_at         timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  -- Null: announced, bytes not there yet; invisible.
  committed_at       timestamptz(3)
);
-- Reported once, however often the worker repeats itself.
CREATE UNIQUE INDEX artifacts_client_id ON artifacts (run_uid, client_artifact_id);

-- Pull requests opened for runs: the orchestrator opens them, never the sandbox.
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
  created_at    timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
-- A run has one pull request per repository and branch.
CREATE UNIQUE INDEX pull_requests_head ON pull_requests (run_uid, owner, repo, head_branch);
CREATE INDEX pull_requests_by_artifact ON pull_requests (artifact_uid);

-- Numbers of local pull requests, given under the lock of the repository's row.
CREATE TABLE local_pull_request_counters (
  code_host_uid uuid    NOT NULL,
  owner         text    NOT NULL,
  repo          text    NOT NULL,
  last_number   integer NOT NULL,
  PRIMARY KEY (code_host_uid, owner, repo)
);

-- Where executions put their workspaces; an execution's completion names the one to go on from.
CREATE TABLE snapshots (
  snapshot_key text           PRIMARY KEY,
  run_uid      uuid           NOT NULL,
  execution_id bigint         NOT NULL,
  attempt      integer        NOT NULL,
  size_bytes   bigint         NOT NULL,
  created_at   timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX snapshots_by_run ON snapshots (run_uid, created_at);

-- The newest transcript blob of a run and the last event in it.
CREATE TABLE transcripts (
  run_uid    uuid           PRIMARY KEY,
  blob_key   text           NOT NULL,
  last_seq   bigint         NOT NULL,
  written_at timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);

-- Scorers, their attempts, benchmark suites and their runs. The columns are explained in ../../schema.prisma.

CREATE TABLE scorers (
  uid                      uuid             PRIMARY KEY,
  id                       bigint           GENERATED ALWAYS AS IDENTITY UNIQUE,
  factory_uid              uuid             NOT NULL,
  team_uid                 uuid             NOT NULL,
  slug                     text,
  name                     text             NOT NULL CONSTRAINT scorers_name CHECK (name <> ''),
  description              text             NOT NULL DEFAULT '',
  kind                     text             NOT NULL DEFAULT 'user'
    CONSTRAINT scorers_kind CHECK (kind IN ('user', 'benchmark_task_correctness')),
  scope_mode               text             NOT NULL
    CONSTRAINT scorers_scope CHECK (scope_mode IN ('all_agents', 'selected_agents')),
  agents                   jsonb            NOT NULL DEFAULT '[]',
  labels                   jsonb            NOT NULL,
  threshold                double precision NOT NULL CONSTRAINT scorers_threshold CHECK (threshold BETWEEN 0 AND 1),
  scoring_prompt           text             NOT NULL,
  model_id                 text             NOT NULL,
  rule                     jsonb,
  sampling_rate            numeric(5, 2)    NOT NULL DEFAULT 100
    CONSTRAINT scorers_sampling CHECK (sampling_rate BETWEEN 0 AND 100),
  agent_config             jsonb,
  self_improvement_enabled boolean          NOT NULL DEFAULT false,
  enabled                  boolean          NOT NULL DEFAULT true,
  version                  integer          NOT NULL DEFAULT 1,
  creator_type             text             NOT NULL,
  creator_uid              text             NOT NULL,
  created_at               timestamptz(3)   NOT NULL,
  updated_at               timestamptz(3)   NOT NULL
);
-- Names are unique within a factory and case-insensitive.
CREATE UNIQUE INDEX scorers_by_name ON scorers (factory_uid, lower(name));
CREATE UNIQUE INDEX scorers_by_slug ON scorers (factory_uid, slug)
  WHERE slug IS NOT NULL;
-- Whether a team has scorers; read for every run that finishes.
CREATE INDEX scorers_by_team ON scorers (team_uid);
-- A factory has one scorer for the correctness of benchmark tasks.
CREATE UNIQUE INDEX scorers_managed ON scorers (factory_uid)
  WHERE kind = 'benchmark_task_correctness';

CREATE TABLE attempts (
  uid              uuid             PRIMARY KEY,
  scorer_uid       uuid             NOT NULL
    CONSTRAINT attempts_scorer_uid_fkey REFERENCES scorers (uid) ON DELETE CASCADE,
  run_uid          uuid             NOT NULL,
  factory_uid      uuid             NOT NULL,
  team_uid         uuid             NOT NULL,
  agent_uid        uuid,
  conversation_uid uuid,
  title            text             NOT NULL DEFAULT '',
  trial_uid        uuid,
  trigger_source   text             NOT NULL
    CONSTRAINT attempts_trigger CHECK (trigger_source IN ('automatic', 'manual', 'benchmark')),
  requester_type   text             NOT NULL,
  requester_uid    text             NOT NULL,
  state            text             NOT NULL DEFAULT 'pending'
    CONSTRAINT attempts_state CHECK (state IN ('pending', 'judging', 'scored', 'failed')),
  is_current       boolean          NOT NULL,
  config           jsonb            NOT NULL,
  run_version      bigint           NOT NULL,
  judge_run_uid    uuid,
  classification   text,
  score            double precision,
  reason           text,
  reason_status    text             NOT NULL DEFAULT 'absent'
    CONSTRAINT attempts_reason CHECK (reason_status IN ('available', 'absent', 'unavailable')),
  failure_code     text,
  failure_message  text,
  cost_micros      bigint           NOT NULL DEFAULT 0,
  judge_time_ms    bigint,
  judge_usage      jsonb,
  attempted_at     timestamptz(3)   NOT NULL,
  scored_at        timestamptz(3),
  reviewed_at      timestamptz(3),
  CONSTRAINT attempts_scored
    CHECK ((state = 'scored') = (classification IS NOT NULL AND score IS NOT NULL AND scored_at IS NOT NULL)),
  CONSTRAINT attempts_failed CHECK ((state = 'failed') = (failure_code IS NOT NULL))
) WITH (fillfactor = 80);
-- At most one attempt per pair of scorer and run is in progress.
CREATE UNIQUE INDEX attempts_in_flight ON attempts (scorer_uid, run_uid)
  WHERE state IN ('pending', 'judging');
-- The attempt that is shown for a pair.
CREATE UNIQUE INDEX attempts_current ON attempts (scorer_uid, run_uid)
  WHERE is_current;
-- Results, newest first.
CREATE INDEX attempts_results ON attempts (scorer_uid, attempted_at DESC, uid DESC)
  WHERE is_current;
-- Pass rates and the newest scores.
CREATE INDEX attempts_scores ON attempts (scorer_uid, scored_at DESC) INCLUDE (score, cost_micros)
  WHERE is_current AND state = 'scored';
-- Scores of a run.
CREATE INDEX attempts_by_run ON attempts (run_uid, attempted_at DESC)
  WHERE is_current;
-- The attempt of a judge run.
CREATE UNIQUE INDEX attempts_by_judge_run ON attempts (judge_run_uid)
  WHERE judge_run_uid IS NOT NULL;
-- Scores of a trial.
CREATE INDEX attempts_by_trial ON attempts (trial_uid)
  WHERE trial_uid IS NOT NULL;
-- Failures that no self-improvement run has reviewed.
CREATE INDEX attempts_unreviewed ON attempts (scorer_uid, score, agent_uid, scored_at)
  WHERE is_current AND state = 'scored' AND reviewed_at IS NULL;

-- How many live scores scorers have: current attempts with a score. In 16 rows per scorer, so that judges of one scorer
-- seldom wait for each other.
CREATE TABLE score_counts (
  scorer_uid uuid     NOT NULL CONSTRAINT score_counts_scorer_uid_fkey REFERENCES scorers (uid) ON DELETE CASCADE,
  shard      smallint NOT NULL,
  scores     bigint   NOT NULL,
  PRIMARY KEY (scorer_uid, shard)
);

CREATE FUNCTION count_new_scores() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO score_counts (scorer_uid, shard, scores)
  SELECT scorer_uid, hashtext(run_uid::text) & 15, count(*)
    FROM new_rows
   WHERE is_current AND state = 'scored'
   GROUP BY 1, 2
   ORDER BY 1, 2
  ON CONFLICT (scorer_uid, shard) DO UPDATE SET scores = score_counts.scores + excluded.scores;
  RETURN NULL;
END $$;

CREATE FUNCTION count_old_scores() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE score_counts c SET scores = c.scores - o.scores
    FROM (SELECT scorer_uid, hashtext(run_uid::text) & 15 AS shard, count(*) AS scores
            FROM old_rows
           WHERE is_current AND state = 'scored'
           GROUP BY 1, 2) o
   WHERE c.scorer_uid = o.scorer_uid AND c.shard = o.shard;
  RETURN NULL;
END $$;

CREATE FUNCTION count_changed_scores() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO score_counts (scorer_uid, shard, scores)
  SELECT scorer_uid, hashtext(run_uid::text) & 15, sum(change)
    FROM (SELECT scorer_uid, run_uid, 1 AS change FROM new_rows WHERE is_current AND state = 'scored'
          UNION ALL
          SELECT scorer_uid, run_uid, -1 FROM old_rows WHERE is_current AND state = 'scored') changes
   GROUP BY 1, 2
  HAVING sum(change) <> 0
   ORDER BY 1, 2
  ON CONFLICT (scorer_uid, shard) DO UPDATE SET scores = score_counts.scores + excluded.scores;
  RETURN NULL;
END $$;

CREATE TRIGGER attempts_inserted AFTER INSERT ON attempts
  REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_new_scores();
CREATE TRIGGER attempts_updated AFTER UPDATE ON attempts
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_changed_scores();
CREATE TRIGGER attempts_deleted AFTER DELETE ON attempts
  REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_old_scores();

CREATE TABLE finished_runs (
  run_uid     uuid           PRIMARY KEY,
  team_uid    uuid           NOT NULL,
  version     bigint         NOT NULL,
  finished_at timestamptz(3) NOT NULL
);

CREATE TABLE self_improvements (
  scorer_uid        uuid           PRIMARY KEY
    CONSTRAINT self_improvements_scorer_uid_fkey REFERENCES scorers (uid) ON DELETE CASCADE,
  failure_threshold integer        NOT NULL CHECK (failure_threshold BETWEEN 1 AND 1000),
  failure_age_days  integer        NOT NULL CHECK (failure_age_days BETWEEN 1 AND 90),
  runs_per_week     integer        NOT NULL CHECK (runs_per_week BETWEEN 1 AND 50),
  cost_limit_micros bigint         NOT NULL CHECK (cost_limit_micros > 0),
  created_at        timestamptz(3) NOT NULL,
  updated_at        timestamptz(3) NOT NULL
);

CREATE TABLE self_improvement_runs (
  uid        uuid           PRIMARY KEY,
  scorer_uid uuid           NOT NULL
    CONSTRAINT self_improvement_runs_scorer_uid_fkey REFERENCES scorers (uid) ON DELETE CASCADE,
  agent_uid  uuid           NOT NULL,
  run_uid    uuid,
  started_at timestamptz(3) NOT NULL
);
CREATE INDEX self_improvement_runs_by_scorer ON self_improvement_runs (scorer_uid, started_at DESC);

CREATE TABLE suites (
  uid                uuid           PRIMARY KEY,
  factory_uid        uuid           NOT NULL,
  team_uid           uuid           NOT NULL,
  slug               text,
  name               text           NOT NULL CONSTRAINT suites_name CHECK (name <> ''),
  description        text,
  agent_uid          uuid           NOT NULL,
  factory_agent_type text           NOT NULL,
  configurations     jsonb          NOT NULL DEFAULT '[]',
  version            integer        NOT NULL DEFAULT 1,
  creator_type       text           NOT NULL,
  creator_uid        text           NOT NULL,
  created_at         timestamptz(3) NOT NULL,
  updated_at         timestamptz(3) NOT NULL,
  deleted_at         timestamptz(3)
);
CREATE UNIQUE INDEX suites_by_name ON suites (factory_uid, lower(name))
  WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX suites_by_slug ON suites (factory_uid, slug)
  WHERE slug IS NOT NULL AND deleted_at IS NULL;
-- The list of suites, newest first.
CREATE INDEX suites_by_age ON suites (factory_uid, created_at DESC, uid DESC)
  WHERE deleted_at IS NULL;

CREATE TABLE suite_tasks (
  uid                uuid           PRIMARY KEY,
  id                 bigint         GENERATED ALWAYS AS IDENTITY UNIQUE,
  suite_uid          uuid           NOT NULL
    CONSTRAINT suite_tasks_suite_uid_fkey REFERENCES suites (uid) ON DELETE CASCADE,
  position           integer        NOT NULL,
  slug               text,
  title              text           NOT NULL,
  prompt             text           NOT NULL,
  success_criteria   text           NOT NULL,
  source_run_uid     uuid,
  starting_repo_refs jsonb          NOT NULL DEFAULT '[]',
  tags               jsonb          NOT NULL DEFAULT '[]',
  labels             jsonb          NOT NULL DEFAULT '{}',
  rule               jsonb,
  created_at         timestamptz(3) NOT NULL,
  updated_at         timestamptz(3) NOT NULL,
  CONSTRAINT suite_tasks_title UNIQUE (suite_uid, title) DEFERRABLE INITIALLY IMMEDIATE
);

CREATE TABLE benchmark_runs (
  uid               uuid           PRIMARY KEY,
  suite_uid         uuid           NOT NULL,
  suite_name        text           NOT NULL,
  suite_version     integer        NOT NULL,
  factory_uid       uuid           NOT NULL,
  team_uid          uuid           NOT NULL,
  state             text           NOT NULL
    CONSTRAINT benchmark_runs_state
    CHECK (state IN ('pending', 'running', 'scoring', 'completed', 'failed', 'cancelled')),
  manifest          jsonb          NOT NULL,
  manifest_hash     char(64)       NOT NULL,
  repetition_count  integer        NOT NULL CHECK (repetition_count >= 1),
  agent_uid         uuid           NOT NULL,
  agent_name        text           NOT NULL,
  parallelism       integer        NOT NULL CHECK (parallelism >= 1),
  replayed_run_uid  uuid,
  incomplete_reason text,
  creator_type      text           NOT NULL,
  creator_uid       text           NOT NULL,
  created_at        timestamptz(3) NOT NULL,
  updated_at        timestamptz(3) NOT NULL,
  started_at        timestamptz(3),
  completed_at      timestamptz(3)
);
-- The runs of a suite, newest first.
CREATE INDEX benchmark_runs_by_suite ON benchmark_runs (suite_uid, created_at DESC, uid DESC);
-- Benchmark runs with trials to start or to wait for.
CREATE INDEX benchmark_runs_active ON benchmark_runs (created_at)
  WHERE state IN ('pending', 'running', 'scoring');

CREATE TABLE trials (
  uid               uuid           PRIMARY KEY,
  id                bigint         GENERATED ALWAYS AS IDENTITY UNIQUE,
  benchmark_run_uid uuid           NOT NULL
    CONSTRAINT trials_benchmark_run_uid_fkey REFERENCES benchmark_runs (uid) ON DELETE CASCADE,
  position          integer        NOT NULL,
  configuration_uid uuid           NOT NULL,
  task_uid          uuid           NOT NULL,
  rep_index         integer        NOT NULL,
  state             text           NOT NULL DEFAULT 'pending'
    CONSTRAINT trials_state CHECK (state IN ('pending', 'running', 'succeeded', 'failed', 'cancelled')),
  terminal_reason   text           CONSTRAINT trials_reason CHECK (terminal_reason IN ('timeout', 'failure')),
  is_infra_failure  boolean        NOT NULL DEFAULT false,
  run_uid           uuid,
  attempt_count     integer        NOT NULL DEFAULT 0,
  cost_micros       bigint         NOT NULL DEFAULT 0,
  total_tokens      bigint         NOT NULL DEFAULT 0,
  wall_time_ms      bigint         NOT NULL DEFAULT 0,
  usage             jsonb,
  created_at        timestamptz(3) NOT NULL,
  started_at        timestamptz(3),
  completed_at      timestamptz(3),
  measured_at       timestamptz(3),
  UNIQUE (benchmark_run_uid, position)
) WITH (fillfactor = 80);

CREATE TABLE trial_attempts (
  trial_uid      uuid           NOT NULL
    CONSTRAINT trial_attempts_trial_uid_fkey REFERENCES trials (uid) ON DELETE CASCADE,
  attempt_number integer        NOT NULL,
  run_uid        uuid,
  state          text           NOT NULL
    CONSTRAINT trial_attempts_state CHECK (state IN ('pending', 'running', 'succeeded', 'failed', 'cancelled')),
  error_code     text,
  at_capacity    boolean        NOT NULL DEFAULT false,
  started_at     timestamptz(3) NOT NULL,
  completed_at   timestamptz(3),
  PRIMARY KEY (trial_uid, attempt_number)
);
-- The trials of a run: the one for which it was created, and those that replay it.
CREATE INDEX trial_attempts_by_run ON trial_attempts (run_uid)
  WHERE run_uid IS NOT NULL;

CREATE TABLE trial_scores (
  trial_uid      uuid             NOT NULL
    CONSTRAINT trial_scores_trial_uid_fkey REFERENCES trials (uid) ON DELETE CASCADE,
  scorer_uid     uuid             NOT NULL
    CONSTRAINT trial_scores_scorer_uid_fkey REFERENCES scorers (uid) ON DELETE CASCADE,
  state          text             NOT NULL
    CONSTRAINT trial_scores_state
    CHECK (state IN ('awaiting_trial', 'pending', 'judging', 'scored', 'finished_unscored', 'not_scoreable')),
  classification text,
  score          double precision,
  judge_run_uid  uuid,
  cost_micros    bigint           NOT NULL DEFAULT 0,
  PRIMARY KEY (trial_uid, scorer_uid)
);
-- Scores that are deleted with their scorer.
CREATE INDEX trial_scores_by_scorer ON trial_scores (scorer_uid);

CREATE TABLE definition_stages (
  factory_uid uuid           NOT NULL,
  version     bigint         NOT NULL,
  team_uid    uuid           NOT NULL,
  part        jsonb          NOT NULL,
  staged_at   timestamptz(3) NOT NULL,
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

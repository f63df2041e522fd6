-- Facts of runs and pull requests, the cost ledger, and the read models computed from them. The columns are explained
-- in ../../schema.prisma.
--
-- Triggers maintain the tables that sum `run_facts`, `ledger_entries` and `pull_requests`, so that sums always equal
-- their rows. A transaction that writes facts of a factory first takes the factory's advisory lock
-- (store/factory-lock.ts): writers of one factory are serialized.

-- == Runs ==

CREATE TABLE stale_runs (
  run_uid    uuid           PRIMARY KEY,
  marks      bigint         NOT NULL DEFAULT 1,
  changed_at timestamptz(3) NOT NULL,
  refresh_at timestamptz(3) NOT NULL,
  failures   integer        NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX stale_runs_due ON stale_runs (refresh_at);
-- The oldest change that no response contains yet.
CREATE INDEX stale_runs_oldest ON stale_runs (changed_at);

CREATE TABLE run_facts (
  run_uid           uuid           PRIMARY KEY,
  team_uid          uuid           NOT NULL,
  factory_uid       uuid           NOT NULL,
  root_run_uid      uuid           NOT NULL,
  parent_run_uid    uuid,
  conversation_uid  uuid           NOT NULL,
  created_at        timestamptz(3) NOT NULL,
  finished_at       timestamptz(3),
  version           bigint         NOT NULL,
  state             text           NOT NULL,
  source            text           NOT NULL,
  agent_uid         text           NOT NULL,
  agent_name        text           NOT NULL,
  agent_type        text           NOT NULL,
  model_id          text           NOT NULL,
  harness           text           NOT NULL,
  root_source       text           NOT NULL,
  creator_type      text           NOT NULL,
  creator_uid       text           NOT NULL,
  person_follow_ups integer        NOT NULL
);
-- Runs of a factory in a range that does not begin or end at midnight UTC.
CREATE INDEX run_facts_by_factory ON run_facts (factory_uid, created_at)
  INCLUDE (parent_run_uid, agent_type, state, source, model_id, harness);
-- The newest name of an agent.
CREATE INDEX run_facts_by_agent ON run_facts (factory_uid, agent_uid, created_at DESC) INCLUDE (agent_name);

-- The factories of a team.
CREATE INDEX run_facts_by_team ON run_facts (team_uid, factory_uid);

-- Runs per UTC day of their creation.
CREATE TABLE run_days (
  factory_uid uuid    NOT NULL,
  day         date    NOT NULL,
  is_root     boolean NOT NULL,
  agent_type  text    NOT NULL,
  state       text    NOT NULL,
  source      text    NOT NULL,
  model_id    text    NOT NULL,
  harness     text    NOT NULL,
  runs        bigint  NOT NULL,
  PRIMARY KEY (factory_uid, day, is_root, agent_type, state, source, model_id, harness)
) WITH (fillfactor = 80);

CREATE FUNCTION utc_day(at timestamptz) RETURNS date
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (at AT TIME ZONE 'UTC')::date;

CREATE FUNCTION count_new_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_days AS d (factory_uid, day, is_root, agent_type, state, source, model_id, harness, runs)
  SELECT factory_uid, utc_day(created_at), parent_run_uid IS NULL, agent_type, state, source, model_id, harness,
         count(*)
    FROM new_rows
   GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
  ON CONFLICT (factory_uid, day, is_root, agent_type, state, source, model_id, harness)
  DO UPDATE SET runs = d.runs + excluded.runs;
  RETURN NULL;
END $$;

CREATE FUNCTION count_changed_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_days AS d (factory_uid, day, is_root, agent_type, state, source, model_id, harness, runs)
  SELECT factory_uid, utc_day(created_at), parent_run_uid IS NULL, agent_type, state, source, model_id, harness,
         sum(change)
    FROM (SELECT factory_uid, created_at, parent_run_uid, agent_type, state, source, model_id, harness, 1 AS change
            FROM new_rows
          UNION ALL
          SELECT factory_uid, created_at, parent_run_uid, agent_type, state, source, model_id, harness, -1
            FROM old_rows) changes
   GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
  HAVING sum(change) <> 0
  ON CONFLICT (factory_uid, day, is_root, agent_type, state, source, model_id, harness)
  DO UPDATE SET runs = d.runs + excluded.runs;
  RETURN NULL;
END $$;

CREATE TRIGGER run_facts_insert AFTER INSERT ON run_facts
  REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_new_runs();
CREATE TRIGGER run_facts_update AFTER UPDATE ON run_facts
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_changed_runs();

-- == Costs ==

CREATE TABLE compute_prices (
  version             integer        PRIMARY KEY,
  vcpu_hour_micros    bigint         NOT NULL CHECK (vcpu_hour_micros >= 0),
  gb_hour_micros      bigint         NOT NULL CHECK (gb_hour_micros >= 0),
  platform_run_micros bigint         NOT NULL CHECK (platform_run_micros >= 0),
  effective_from      timestamptz(3) NOT NULL,
  created_at          timestamptz(3) NOT NULL DEFAULT now(),
  created_by_type     text,
  created_by_uid      text
);
-- Compute and the platform are free until an operator sets prices: the team owns the machines.
INSERT INTO compute_prices (version, vcpu_hour_micros, gb_hour_micros, platform_run_micros, effective_from)
VALUES (1, 0, 0, 0, '1970-01-01 00:00:00+00');

CREATE FUNCTION refuse_price_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'Versions of the price book cannot be changed; insert another version.';
END $$;
CREATE TRIGGER compute_prices_immutable BEFORE UPDATE ON compute_prices
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_price_change();

-- Progress of pricing again the runs that a version with an earlier `effective_from` affects.
CREATE TABLE repricings (
  version       integer        PRIMARY KEY,
  after_run_uid uuid,
  run_count     bigint         NOT NULL DEFAULT 0,
  completed_at  timestamptz(3)
);

-- Append-only.
CREATE TABLE ledger_entries (
  source_key      uuid           PRIMARY KEY,
  team_uid        uuid           NOT NULL,
  factory_uid     uuid           NOT NULL,
  run_uid         uuid           NOT NULL,
  component       text           NOT NULL
    CONSTRAINT ledger_entries_component CHECK (component IN ('inference', 'compute', 'platform')),
  kind            text           NOT NULL
    CONSTRAINT ledger_entries_kind CHECK (kind IN ('model_call', 'compute_interval', 'platform_charge', 'adjustment')),
  occurred_at     timestamptz(3) NOT NULL,
  micros          bigint,
  price_version   integer,
  quantity        jsonb          NOT NULL,
  owner_run_uid   uuid           NOT NULL,
  owner_root_uid  uuid           NOT NULL,
  source          text           NOT NULL,
  creator_type    text           NOT NULL,
  creator_uid     text           NOT NULL,
  agent_uid       text           NOT NULL,
  model_id        text           NOT NULL,
  recorded_at     timestamptz(3) NOT NULL DEFAULT now(),
  corrects        uuid,     -- of an adjustment: the entry that it corrects
  unpriced_change smallint  -- of an adjustment: -1 if the entry had no price before, 1 if it has none since
);
-- Spend of a factory in a range that does not begin or end at midnight UTC.
CREATE INDEX ledger_entries_by_factory ON ledger_entries (factory_uid, occurred_at);
-- Entries of a run.
CREATE INDEX ledger_entries_by_run ON ledger_entries (run_uid);
-- Corrections of an entry.
CREATE INDEX ledger_entries_by_corrected ON ledger_entries (corrects)
  WHERE corrects IS NOT NULL;
-- Corrections by a version of the price book.
CREATE INDEX ledger_entries_corrections ON ledger_entries (component, price_version) INCLUDE (micros)
  WHERE kind = 'adjustment';

CREATE FUNCTION refuse_ledger_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'Entries of the ledger cannot be changed or deleted; insert an adjustment.';
END $$;
CREATE TRIGGER ledger_entries_append_only BEFORE UPDATE OR DELETE ON ledger_entries
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_ledger_change();

-- Spend per UTC day and group of one dimension: the number of rows per year is that of groups and days, not that of
-- combinations of groups.
CREATE TABLE cost_group_days (
  factory_uid                uuid   NOT NULL,
  dimension                  text   NOT NULL
    CONSTRAINT cost_group_days_dimension CHECK (dimension IN ('source', 'user', 'agent', 'model')),
  day                        date   NOT NULL,
  key                        text   NOT NULL,
  creator_type               text   NOT NULL,
  inference_micros           bigint NOT NULL,
  compute_micros             bigint NOT NULL,
  platform_micros            bigint NOT NULL,
  model_calls                bigint NOT NULL,
  unpriced_model_calls       bigint NOT NULL,
  compute_intervals          bigint NOT NULL,
  unpriced_compute_intervals bigint NOT NULL,
  PRIMARY KEY (factory_uid, dimension, day, key, creator_type)
) WITH (fillfactor = 80);

-- Spend per run tree, component and configured model.
CREATE TABLE tree_costs (
  root_run_uid uuid   NOT NULL,
  component    text   NOT NULL,
  model_id     text   NOT NULL,
  factory_uid  uuid   NOT NULL,
  micros       bigint NOT NULL,
  PRIMARY KEY (root_run_uid, component, model_id)
) WITH (fillfactor = 80);

CREATE FUNCTION sum_new_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO cost_group_days AS d (factory_uid, dimension, day, key, creator_type,
                                    inference_micros, compute_micros, platform_micros,
                                    model_calls, unpriced_model_calls, compute_intervals, unpriced_compute_intervals)
  SELECT factory_uid, g.dimension, utc_day(occurred_at), g.key, g.creator_type,
         coalesce(sum(micros) FILTER (WHERE component = 'inference'), 0),
         coalesce(sum(micros) FILTER (WHERE component = 'compute'), 0),
         coalesce(sum(micros) FILTER (WHERE component = 'platform'), 0),
         count(*) FILTER (WHERE kind = 'model_call'),
         count(*) FILTER (WHERE kind = 'model_call' AND micros IS NULL)
           + coalesce(sum(unpriced_change) FILTER (WHERE component = 'inference'), 0),
         count(*) FILTER (WHERE kind = 'compute_interval'),
         count(*) FILTER (WHERE kind = 'compute_interval' AND micros IS NULL)
           + coalesce(sum(unpriced_change) FILTER (WHERE component = 'compute'), 0)
    FROM new_rows n
   CROSS JOIN LATERAL (VALUES ('source', n.source, ''), ('user', n.creator_uid, n.creator_type),
                               ('agent', n.agent_uid, ''), ('model', n.model_id, ''))
                   AS g (dimension, key, creator_type)
   GROUP BY 1, 2, 3, 4, 5
  ON CONFLICT (factory_uid, dimension, day, key, creator_type)
  DO UPDATE SET inference_micros = d.inference_micros + excluded.inference_micros,
                compute_micros = d.compute_micros + excluded.compute_micros,
                platform_micros = d.platform_micros + excluded.platform_micros,
                model_calls = d.model_calls + excluded.model_calls,
                unpriced_model_calls = d.unpriced_model_calls + excluded.unpriced_model_calls,
                compute_intervals = d.compute_intervals + excluded.compute_intervals,
                unpriced_compute_intervals = d.unpriced_compute_intervals + excluded.unpriced_compute_intervals;
  INSERT INTO tree_costs AS t (root_run_uid, component, model_id, factory_uid, micros)
  SELECT owner_root_uid, component, model_id, factory_uid, coalesce(sum(micros), 0)
    FROM new_rows
   GROUP BY 1, 2, 3, 4
  ON CONFLICT (root_run_uid, component, model_id) DO UPDATE SET micros = t.micros + excluded.micros;
  RETURN NULL;
END $$;

CREATE TRIGGER ledger_entries_insert AFTER INSERT ON ledger_entries
  REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION sum_new_entries();

-- Credits that a platform administrator granted to a team. Append-only.
CREATE TABLE credit_grants (
  uid             uuid           PRIMARY KEY,
  team_uid        uuid           NOT NULL,
  micros          bigint         NOT NULL CONSTRAINT credit_grants_micros CHECK (micros > 0),
  note            text           NOT NULL,
  granted_at      timestamptz(3) NOT NULL,
  expires_at      timestamptz(3) CONSTRAINT credit_grants_expires CHECK (expires_at > granted_at),
  created_by_type text           NOT NULL,
  created_by_uid  text           NOT NULL
);
CREATE INDEX credit_grants_by_team ON credit_grants (team_uid, granted_at DESC, uid);

CREATE FUNCTION refuse_grant_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'Credit grants cannot be changed or deleted.';
END $$;
CREATE TRIGGER credit_grants_append_only BEFORE UPDATE OR DELETE ON credit_grants
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_grant_change();

-- == Pull requests ==

-- Pull requests as code hosts report them, for all factories of a team.
CREATE TABLE pull_requests (
  team_uid        uuid           NOT NULL,
  url_key         text           NOT NULL,
  url             text           NOT NULL,
  provider        text           NOT NULL
    CONSTRAINT pull_requests_provider CHECK (provider IN ('GITHUB', 'GITLAB', 'LOCAL')),
  repo_full_name  text           NOT NULL,
  pr_number       integer        NOT NULL,
  title           text,
  author_login    text,
  state           text           NOT NULL
    CONSTRAINT pull_requests_state CHECK (state IN ('open', 'draft', 'merged', 'closed')),
  opened_at       timestamptz(3),
  merged_at       timestamptz(3),
  closed_at       timestamptz(3),
  updated_at      timestamptz(3) NOT NULL,
  additions       integer,
  deletions       integer,
  changed_files   integer,
  num_commits     integer,
  state_at        timestamptz(3),
  measured_at     timestamptz(3),
  history_read_to timestamptz(3),
  recorded_at     timestamptz(3),
  PRIMARY KEY (team_uid, url_key)
);
-- Merges in repositories of a factory, by anyone. Includes the name, so that the index alone is read.
CREATE INDEX pull_requests_merged ON pull_requests (team_uid, lower(repo_full_name), merged_at)
  INCLUDE (repo_full_name, url_key)
  WHERE merged_at IS NOT NULL;

-- Merges by anyone per repository and UTC day: a year of all repositories of a factory is read without its pull
-- requests.
CREATE TABLE repository_merge_days (
  team_uid   uuid   NOT NULL,
  repository text   NOT NULL,
  day        date   NOT NULL,
  merged     bigint NOT NULL,
  PRIMARY KEY (team_uid, repository, day)
) WITH (fillfactor = 80);

-- Rows are written in key order: transactions that count the same repositories wait for each other and do not deadlock.
CREATE FUNCTION count_new_merges() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO repository_merge_days AS d (team_uid, repository, day, merged)
  SELECT team_uid, lower(repo_full_name), utc_day(merged_at), count(*)
    FROM new_rows
   WHERE merged_at IS NOT NULL
   GROUP BY 1, 2, 3
   ORDER BY 1, 2, 3
  ON CONFLICT (team_uid, repository, day) DO UPDATE SET merged = d.merged + excluded.merged;
  RETURN NULL;
END $$;

CREATE FUNCTION count_changed_merges() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO repository_merge_days AS d (team_uid, repository, day, merged)
  SELECT team_uid, lower(repo_full_name), utc_day(merged_at), sum(change)
    FROM (SELECT team_uid, repo_full_name, merged_at, 1 AS change FROM new_rows
          UNION ALL
          SELECT team_uid, repo_full_name, merged_at, -1 FROM old_rows) changes
   WHERE merged_at IS NOT NULL
   GROUP BY 1, 2, 3
  HAVING sum(change) <> 0
   ORDER BY 1, 2, 3
  ON CONFLICT (team_uid, repository, day) DO UPDATE SET merged = d.merged + excluded.merged;
  RETURN NULL;
END $$;

CREATE TRIGGER pull_requests_insert AFTER INSERT ON pull_requests
  REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_new_merges();
CREATE TRIGGER pull_requests_update AFTER UPDATE ON pull_requests
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_changed_merges();

-- Actions of people and programs on a pull request. Kinds are the counters of `human_interactions`.
CREATE TABLE pull_request_activities (
  team_uid       uuid           NOT NULL,
  url_key        text           NOT NULL,
  activity_key   text           NOT NULL,
  kind           text           NOT NULL CONSTRAINT pull_request_activities_kind CHECK (kind IN
    ('opened', 'code_push', 'review_approved', 'review_changes_requested', 'review_commented', 'comment',
     'review_comment', 'pr_action')),
  actor_login    text           NOT NULL,
  is_person      boolean        NOT NULL,
  is_dismissed   boolean        NOT NULL DEFAULT false,
  is_approximate boolean      NOT NULL DEFAULT false,
  occurred_at    timestamptz(3) NOT NULL,
  PRIMARY KEY (team_uid, url_key, activity_key)
);

-- Pull requests that runs have produced.
CREATE TABLE produced_pull_requests (
  run_uid        uuid           NOT NULL,
  url_key        text           NOT NULL,
  team_uid       uuid           NOT NULL,
  factory_uid    uuid           NOT NULL,
  root_run_uid   uuid           NOT NULL,
  url            text           NOT NULL,
  provider       text           NOT NULL,
  repo_full_name text           NOT NULL,
  pr_number      integer        NOT NULL,
  title          text           NOT NULL,
  created_at     timestamptz(3) NOT NULL,
  run_created_at timestamptz(3) NOT NULL,
  additions      integer,
  deletions      integer,
  changed_files  integer,
  num_commits    integer,
  PRIMARY KEY (run_uid, url_key)
);
CREATE INDEX produced_pull_requests_by_url ON produced_pull_requests (team_uid, url_key);
CREATE INDEX produced_pull_requests_by_root ON produced_pull_requests (root_run_uid);

-- Facts of a code host and runs that produce the same pull request may be stored concurrently. The writer of facts
-- takes this lock exclusively: it either sees every producer, or the producer's transaction sees the facts
-- (store/pull-request-fact-store.ts).
CREATE FUNCTION lock_produced_pull_request() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('pull request ' || NEW.team_uid || ' ' || NEW.url_key, 0));
  RETURN NEW;
END $$;
CREATE TRIGGER produced_pull_requests_lock BEFORE INSERT ON produced_pull_requests
  FOR EACH ROW EXECUTE FUNCTION lock_produced_pull_request();

-- Polling of code hosts, because webhooks may miss changes.
CREATE TABLE polled_repositories (
  team_uid       uuid           NOT NULL,
  provider       text           NOT NULL
    CONSTRAINT polled_repositories_provider CHECK (provider IN ('GITHUB', 'GITLAB')),
  repo_key       text           NOT NULL,
  repo_full_name text           NOT NULL,
  code_host_uid  uuid,
  read_to        timestamptz(3) NOT NULL,
  etag           text           NOT NULL DEFAULT '',
  poll_at        timestamptz(3) NOT NULL,
  failures       integer        NOT NULL DEFAULT 0,
  PRIMARY KEY (team_uid, provider, repo_key)
) WITH (fillfactor = 70);
CREATE INDEX polled_repositories_due ON polled_repositories (poll_at);

CREATE TABLE polled_pull_requests (
  team_uid       uuid           NOT NULL,
  url_key        text           NOT NULL,
  url            text           NOT NULL,
  provider       text           NOT NULL
    CONSTRAINT polled_pull_requests_provider CHECK (provider IN ('GITHUB', 'GITLAB', 'LOCAL')),
  repo_key       text           NOT NULL,
  repo_full_name text           NOT NULL,
  pr_number      integer        NOT NULL,
  etags          jsonb          NOT NULL DEFAULT '{}',
  changed_at     timestamptz(3),
  is_final       boolean        NOT NULL DEFAULT false,
  poll_at        timestamptz(3),
  failures       integer        NOT NULL DEFAULT 0,
  PRIMARY KEY (team_uid, url_key)
) WITH (fillfactor = 70);
CREATE INDEX polled_pull_requests_due ON polled_pull_requests (poll_at);
-- Pull requests that wait until their repository is connected.
CREATE INDEX polled_pull_requests_by_repository ON polled_pull_requests (team_uid, provider, repo_key);

CREATE TABLE code_host_pauses (
  code_host_uid uuid           PRIMARY KEY,
  paused_until  timestamptz(3) NOT NULL
);

-- A pull request that a run produced is polled from then on. Pull requests of a repository without a connection wait.
CREATE FUNCTION poll_produced_pull_requests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO polled_repositories (team_uid, provider, repo_key, repo_full_name, read_to, poll_at)
  SELECT DISTINCT ON (team_uid, provider, lower(repo_full_name))
         team_uid, provider, lower(repo_full_name), repo_full_name, run_created_at, created_at
    FROM new_rows
   WHERE provider IN ('GITHUB', 'GITLAB')
     AND repo_full_name <> ''
   ORDER BY team_uid, provider, lower(repo_full_name), run_created_at
  ON CONFLICT DO NOTHING;
  INSERT INTO polled_pull_requests (team_uid, url_key, url, provider, repo_key, repo_full_name, pr_number, poll_at)
  SELECT DISTINCT ON (n.team_uid, n.url_key)
         n.team_uid, n.url_key, n.url, n.provider, lower(n.repo_full_name), n.repo_full_name, n.pr_number,
         CASE WHEN n.provider = 'LOCAL' OR r.code_host_uid IS NOT NULL THEN n.created_at END
    FROM new_rows n
    LEFT JOIN polled_repositories r
      ON r.team_uid = n.team_uid AND r.provider = n.provider AND r.repo_key = lower(n.repo_full_name)
   WHERE n.provider IN ('GITHUB', 'GITLAB', 'LOCAL')
     AND n.repo_full_name <> ''
     AND n.pr_number > 0
   ORDER BY n.team_uid, n.url_key, n.created_at
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER produced_pull_requests_poll AFTER INSERT ON produced_pull_requests
  REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION poll_produced_pull_requests();

-- The share of a tree's spend of each of its pull requests: equal parts; the remainder goes to the first ones by URL.
CREATE TABLE pull_request_shares (
  factory_uid      uuid   NOT NULL,
  url_key          text   NOT NULL,
  root_run_uid     uuid   NOT NULL,
  inference_micros bigint NOT NULL,
  compute_micros   bigint NOT NULL,
  platform_micros  bigint NOT NULL,
  PRIMARY KEY (factory_uid, url_key, root_run_uid)
);
CREATE INDEX pull_request_shares_by_root ON pull_request_shares (root_run_uid);

-- Pull requests that a factory's runs produced, with all values of the responses.
CREATE TABLE factory_pull_requests (
  factory_uid           uuid           NOT NULL,
  url_key               text           NOT NULL,
  team_uid              uuid           NOT NULL,
  url                   text           NOT NULL,
  provider              text           NOT NULL,
  repo_full_name        text           NOT NULL,
  pr_number             integer        NOT NULL,
  title                 text,
  author_login          text,
  state                 text           NOT NULL,
  has_host_facts        boolean        NOT NULL,
  opened_at             timestamptz(3),
  first_human_review_at timestamptz(3),
  merged_at             timestamptz(3),
  closed_at             timestamptz(3),
  updated_at            timestamptz(3) NOT NULL,
  additions             integer,
  deletions             integer,
  changed_files         integer,
  num_commits           integer,
  history_complete      boolean        NOT NULL,
  human_code_change     boolean,
  human_interactions    jsonb,
  human_total           integer,
  runs                  jsonb          NOT NULL,
  kickoff_at            timestamptz(3) NOT NULL,
  kickoff_run_uid       uuid           NOT NULL,
  first_seen_at         timestamptz(3) NOT NULL,
  inference_micros      bigint         NOT NULL,
  compute_micros        bigint         NOT NULL,
  platform_micros       bigint         NOT NULL,
  PRIMARY KEY (factory_uid, url_key)
) WITH (fillfactor = 80);
-- The list. Pull requests with an unknown opening time are last.
CREATE INDEX factory_pull_requests_list
  ON factory_pull_requests (factory_uid, coalesce(opened_at, '-infinity') DESC, url_key);
-- The list of one repository, by its case-insensitive name; and the list of repositories.
CREATE INDEX factory_pull_requests_by_repo ON factory_pull_requests
  (factory_uid, lower(repo_full_name), coalesce(opened_at, '-infinity') DESC, url_key);
CREATE INDEX factory_pull_requests_seen ON factory_pull_requests (factory_uid, first_seen_at)
  INCLUDE (inference_micros, compute_micros, platform_micros, additions, deletions);
CREATE INDEX factory_pull_requests_opened ON factory_pull_requests (factory_uid, opened_at)
  INCLUDE (merged_at, human_total);
CREATE INDEX factory_pull_requests_merged ON factory_pull_requests (factory_uid, merged_at)
  INCLUDE (opened_at, first_human_review_at, kickoff_at, additions, deletions, history_complete, human_code_change)
  WHERE merged_at IS NOT NULL;
-- Merges that no code host has reported.
CREATE INDEX factory_pull_requests_unreported_merges ON factory_pull_requests (factory_uid, merged_at)
  WHERE merged_at IS NOT NULL AND NOT has_host_facts;

-- == Service ==

CREATE TABLE rebuilds (
  uid        uuid           PRIMARY KEY,
  phase      text           NOT NULL DEFAULT 'runs'
    CONSTRAINT rebuilds_phase CHECK (phase IN ('runs', 'deliveries', 'done')),
  page       integer        NOT NULL DEFAULT 0,
  page_token text           NOT NULL DEFAULT '',
  runs       bigint         NOT NULL DEFAULT 0,
  deliveries bigint         NOT NULL DEFAULT 0,
  failures   bigint         NOT NULL DEFAULT 0,
  last_error text,
  started_at timestamptz(3) NOT NULL DEFAULT now(),
  ended_at   timestamptz(3)
);
-- One rebuild at a time.
CREATE UNIQUE INDEX rebuilds_active ON rebuilds ((true)) WHERE phase <> 'done';

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

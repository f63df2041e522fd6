-- What the code host is asked for, because webhooks may miss it. Meaning of the columns: ../../schema.prisma.

ALTER TABLE pull_requests ADD COLUMN history_read_to timestamptz(3);

ALTER TABLE pull_request_activities ADD COLUMN is_approximate boolean NOT NULL DEFAULT false;
UPDATE pull_request_activities
   SET is_approximate = true
 WHERE kind = 'pr_action'
    OR activity_key LIKE 'approval:%'
    OR activity_key LIKE 'unapproval:%';

CREATE TABLE polled_repositories (
  team_uid       uuid           NOT NULL,
  provider       text           NOT NULL CONSTRAINT polled_repositories_provider CHECK (provider IN ('GITHUB', 'GITLAB')),
  repo_key       text           NOT NULL,
  repo_full_name text           NOT NULL,
  code_host_uid  uuid,
  read_to        timestamptz(3) NOT NULL,
  etag           text           NOT NULL DEFAULT '',
  poll_at        timestamptz(3) NOT NULL,
  tries          integer        NOT NULL DEFAULT 0,
  PRIMARY KEY (team_uid, provider, repo_key)
) WITH (fillfactor = 70);
CREATE INDEX polled_repositories_due ON polled_repositories (poll_at);

CREATE TABLE polled_pull_requests (
  team_uid       uuid           NOT NULL,
  url_key        text           NOT NULL,
  url            text           NOT NULL,
  provider       text           NOT NULL CONSTRAINT polled_pull_requests_provider CHECK (provider IN ('GITHUB', 'GITLAB', 'LOCAL')),
  repo_key       text           NOT NULL,
  repo_full_name text           NOT NULL,
  pr_number      integer        NOT NULL,
  etags          jsonb          NOT NULL DEFAULT '{}',
  changed_at     timestamptz(3),
  is_final       boolean        NOT NULL DEFAULT false,
  poll_at        timestamptz(3),
  tries          integer        NOT NULL DEFAULT 0,
  PRIMARY KEY (team_uid, url_key)
) WITH (fillfactor = 70);
CREATE INDEX polled_pull_requests_due ON polled_pull_requests (poll_at);
-- Those that wait until their repository is connected.
CREATE INDEX polled_pull_requests_by_repository ON polled_pull_requests (team_uid, provider, repo_key);

CREATE TABLE code_host_pauses (
  code_host_uid uuid           PRIMARY KEY,
  paused_until  timestamptz(3) NOT NULL
);

-- What a run has produced is read from its code host from then on. Pull requests of a repository that no connection serves wait.
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
CREATE TRIGGER produced_pull_requests_poll AFTER INSERT ON produced_pull_requests REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION poll_produced_pull_requests();

INSERT INTO polled_repositories (team_uid, provider, repo_key, repo_full_name, read_to, poll_at)
SELECT DISTINCT ON (team_uid, provider, lower(repo_full_name))
       team_uid, provider, lower(repo_full_name), repo_full_name, run_created_at, created_at
  FROM produced_pull_requests
 WHERE provider IN ('GITHUB', 'GITLAB')
   AND repo_full_name <> ''
 ORDER BY team_uid, provider, lower(repo_full_name), run_created_at;
INSERT INTO polled_pull_requests (team_uid, url_key, url, provider, repo_key, repo_full_name, pr_number, poll_at)
SELECT DISTINCT ON (team_uid, url_key)
       team_uid, url_key, url, provider, lower(repo_full_name), repo_full_name, pr_number,
       CASE WHEN provider = 'LOCAL' THEN created_at END
  FROM produced_pull_requests
 WHERE provider IN ('GITHUB', 'GITLAB', 'LOCAL')
   AND repo_full_name <> ''
   AND pr_number > 0
 ORDER BY team_uid, url_key, created_at;

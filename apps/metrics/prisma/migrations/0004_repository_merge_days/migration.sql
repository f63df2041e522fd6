-- Merges by anyone per repository and UTC day, maintained by triggers, so that a year of all repositories of a factory is read without its pull requests.

CREATE TABLE repository_merge_days (
  team_uid   uuid   NOT NULL,
  repository text   NOT NULL,
  day        date   NOT NULL,
  merged     bigint NOT NULL,
  PRIMARY KEY (team_uid, repository, day)
) WITH (fillfactor = 80);

-- Rows are written in the order of the key: transactions that count the same repositories wait for each other and do not deadlock.
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

-- The triggers come first: they lock the table until the end of the migration, so no merge is missed or counted twice.
CREATE TRIGGER pull_requests_insert AFTER INSERT ON pull_requests REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_new_merges();
CREATE TRIGGER pull_requests_update AFTER UPDATE ON pull_requests REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_changed_merges();

INSERT INTO repository_merge_days (team_uid, repository, day, merged)
SELECT team_uid, lower(repo_full_name), utc_day(merged_at), count(*)
  FROM pull_requests
 WHERE merged_at IS NOT NULL
 GROUP BY 1, 2, 3;

-- Merges that no code host has reported.
CREATE INDEX factory_pull_requests_unreported_merges ON factory_pull_requests (factory_uid, merged_at) WHERE merged_at IS NOT NULL AND NOT has_host_facts;

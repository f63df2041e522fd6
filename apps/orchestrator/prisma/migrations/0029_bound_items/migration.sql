-- Which runs opened this pull request? As for references: see 0010. Over a large table an operator makes it beforehand, CONCURRENTLY.
CREATE INDEX IF NOT EXISTS artifacts_by_pull_request ON artifacts USING hash ((data->>'url')) WHERE artifact_type = 'PULL_REQUEST';

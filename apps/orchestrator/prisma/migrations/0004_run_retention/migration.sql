-- Runs whose events a worker appended, by the time of their transcript; the oldest expire first.
CREATE INDEX IF NOT EXISTS transcripts_by_time ON transcripts (written_at);
-- Artifacts with content, oldest first, for the same purpose.
CREATE INDEX IF NOT EXISTS artifacts_with_content ON artifacts (created_at)
  WHERE committed_at IS NOT NULL AND artifact_type IN ('PLAN', 'SCREENSHOT', 'FILE');

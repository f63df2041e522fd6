-- Lists of runs by every filter: rare values are found by these, common ones on the way along the order that is asked for.
-- Over a large table an operator makes them beforehand, CONCURRENTLY: see docs/operations/processes.md.
CREATE INDEX IF NOT EXISTS runs_by_factory ON runs (owner_uid, factory_uid) WHERE factory_uid IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_by_name ON runs (owner_uid, config_name);
CREATE INDEX IF NOT EXISTS runs_by_model ON runs (owner_uid, model_id);
CREATE INDEX IF NOT EXISTS runs_by_creator ON runs (owner_uid, creator_uid);
CREATE INDEX IF NOT EXISTS runs_by_executor ON runs (owner_uid, executor_uid);
CREATE INDEX IF NOT EXISTS runs_by_source ON runs (owner_uid, source);
CREATE INDEX IF NOT EXISTS runs_by_schedule ON runs (owner_uid, (schedule->>'schedule_id')) WHERE schedule IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_by_state ON runs (owner_uid, state) WHERE state <> 'SUCCEEDED';
CREATE INDEX IF NOT EXISTS runs_by_owner_environment ON runs (owner_uid, environment_uid, created_at DESC, uid DESC) WHERE environment_uid IS NOT NULL;
DROP INDEX runs_by_environment; -- of all owners: somebody without runs in a common environment had to pass everybody else's
CREATE INDEX IF NOT EXISTS runs_live_by_root ON runs (root_run_uid) WHERE state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS');
CREATE INDEX IF NOT EXISTS artifacts_by_type ON artifacts (artifact_type, run_uid) WHERE committed_at IS NOT NULL;
-- Few runs change long after they were made; the others are found near their other time.
CREATE INDEX IF NOT EXISTS runs_updated_late ON runs (owner_uid, updated_at DESC, uid DESC) WHERE updated_at - created_at > interval '1 day';
CREATE INDEX IF NOT EXISTS runs_created_late ON runs (owner_uid, created_at DESC, uid DESC) WHERE updated_at - created_at > interval '1 day';

-- How often which value comes decides which way is shorter: known for some hundred values, and for what has no column.
ALTER TABLE runs
  ALTER COLUMN factory_uid SET STATISTICS 400, ALTER COLUMN config_name SET STATISTICS 400, ALTER COLUMN model_id SET STATISTICS 400,
  ALTER COLUMN creator_uid SET STATISTICS 400, ALTER COLUMN executor_uid SET STATISTICS 400, ALTER COLUMN environment_uid SET STATISTICS 400,
  ALTER COLUMN skill_spec SET STATISTICS 400;
CREATE STATISTICS runs_schedule ON (schedule->>'schedule_id') FROM runs;
ALTER STATISTICS runs_schedule SET STATISTICS 400;

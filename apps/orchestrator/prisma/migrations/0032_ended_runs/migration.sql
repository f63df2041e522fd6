-- A run is written five times at least, and each time every index of its table has an entry anew. What lists look for is what a run was made with:
-- it is entered once, when the run has ended. Until then a run is found among those of its owner that have not (runs_by_state); they are few.
-- Over a large table an operator makes the indexes beforehand, CONCURRENTLY: see docs/operations/processes.md.
CREATE INDEX IF NOT EXISTS runs_ended_by_factory ON runs (owner_uid, factory_uid, state) WHERE factory_uid IS NOT NULL AND state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX IF NOT EXISTS runs_ended_by_name ON runs (owner_uid, config_name, state) WHERE config_name IS NOT NULL AND state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX IF NOT EXISTS runs_ended_by_model ON runs (owner_uid, model_id, state) WHERE state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX IF NOT EXISTS runs_ended_by_creator ON runs (owner_uid, creator_uid, state) WHERE state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX IF NOT EXISTS runs_ended_by_executor ON runs (owner_uid, executor_uid, state) WHERE state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX IF NOT EXISTS runs_ended_by_source ON runs (owner_uid, source, state) WHERE state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX IF NOT EXISTS runs_ended_by_environment ON runs (owner_uid, environment_uid, state) WHERE state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX IF NOT EXISTS runs_ended_by_schedule ON runs (owner_uid, (schedule->>'schedule_id'), state) WHERE schedule IS NOT NULL AND state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX IF NOT EXISTS runs_ended_by_skill ON runs (owner_uid, (skill_spec COLLATE "C"), state) WHERE skill_spec IS NOT NULL AND state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
CREATE INDEX IF NOT EXISTS runs_ended_by_metadata ON runs USING gin (metadata jsonb_path_ops) WHERE metadata <> '{}' AND state IN ('SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED');
-- Most runs are trees of one, and belong to no factory.
CREATE INDEX IF NOT EXISTS runs_below_root ON runs (root_run_uid) WHERE parent_run_uid IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_live_of_factory ON runs (factory_uid) WHERE state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS') AND factory_uid IS NOT NULL;

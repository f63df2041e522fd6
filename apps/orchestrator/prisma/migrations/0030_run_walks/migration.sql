-- A list is walked along its order for some thousand runs, and then found by its filters.
-- Over a large table an operator makes the indexes beforehand, CONCURRENTLY: see docs/operations/processes.md.

-- Few runs change long after they were made. A walk past them all reads their index alone.
CREATE INDEX IF NOT EXISTS runs_updated_late_with_creation ON runs (owner_uid, updated_at DESC, uid DESC) INCLUDE (created_at) WHERE updated_at - created_at > interval '1 day';
CREATE INDEX IF NOT EXISTS runs_created_late_with_update ON runs (owner_uid, created_at DESC, uid DESC) INCLUDE (updated_at) WHERE updated_at - created_at > interval '1 day';
-- What few or no runs of a team are, or nearly all: an entry for the former only.
CREATE INDEX IF NOT EXISTS runs_local ON runs (owner_uid) WHERE execution_location = 'LOCAL';
-- With the state, which is asked for together with everything else; PostgreSQL puts no two indexes together that begin with the same owner.
CREATE INDEX IF NOT EXISTS runs_by_factory_state ON runs (owner_uid, factory_uid, state) WHERE factory_uid IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_by_name_state ON runs (owner_uid, config_name, state);
CREATE INDEX IF NOT EXISTS runs_by_model_state ON runs (owner_uid, model_id, state);
CREATE INDEX IF NOT EXISTS runs_by_creator_state ON runs (owner_uid, creator_uid, state);
CREATE INDEX IF NOT EXISTS runs_by_executor_state ON runs (owner_uid, executor_uid, state);
CREATE INDEX IF NOT EXISTS runs_by_source_state ON runs (owner_uid, source, state);
CREATE INDEX IF NOT EXISTS runs_by_environment_state ON runs (owner_uid, environment_uid, state);
CREATE INDEX IF NOT EXISTS runs_by_schedule_state ON runs (owner_uid, (schedule->>'schedule_id'), state) WHERE schedule IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_by_skill_state ON runs (owner_uid, (skill_spec COLLATE "C"), state) WHERE skill_spec IS NOT NULL;
-- Their forerunners; and with a skill and without are two walks now, each of which `runs_by_skill` has in both directions.
DROP INDEX IF EXISTS runs_updated_late, runs_created_late, runs_by_factory, runs_by_name, runs_by_model, runs_by_creator, runs_by_executor, runs_by_source, runs_by_schedule, runs_by_skill_asc;

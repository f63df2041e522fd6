-- A list is walked along its order for some thousand runs, and then found by its filters.
-- Over a large table an operator makes the indexes beforehand, CONCURRENTLY: see docs/operations/processes.md.

-- Few runs change long after they were made. A walk past them all reads their index alone.
CREATE INDEX IF NOT EXISTS runs_updated_late_with_creation ON runs (owner_uid, updated_at DESC, uid DESC) INCLUDE (created_at) WHERE updated_at - created_at > interval '1 day';
CREATE INDEX IF NOT EXISTS runs_created_late_with_update ON runs (owner_uid, created_at DESC, uid DESC) INCLUDE (updated_at) WHERE updated_at - created_at > interval '1 day';
DROP INDEX runs_updated_late, runs_created_late;
-- What few or no runs of a team are, or nearly all: an entry for the former only.
CREATE INDEX IF NOT EXISTS runs_local ON runs (owner_uid) WHERE execution_location = 'LOCAL';
CREATE INDEX IF NOT EXISTS runs_without_environment ON runs (owner_uid) WHERE environment_uid IS NULL;
-- With a skill and without are two walks now, each of which `runs_by_skill` has in both directions.
DROP INDEX runs_by_skill_asc;

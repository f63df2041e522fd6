-- Lists of runs by the other sort keys, and by metadata.
CREATE INDEX runs_by_title ON runs (owner_uid, (lower(title) COLLATE "C") DESC, uid DESC);
CREATE INDEX runs_by_skill ON runs (owner_uid, (skill_spec IS NULL), (skill_spec COLLATE "C") DESC, uid DESC);
-- Runs without a skill are last in both directions, so each direction has an index.
CREATE INDEX runs_by_skill_asc ON runs (owner_uid, (skill_spec IS NULL), (skill_spec COLLATE "C"), uid);
CREATE INDEX runs_by_metadata ON runs USING gin (metadata jsonb_path_ops);
-- Which run reported this URL? A hash, because URLs are long.
CREATE INDEX artifacts_by_reference ON artifacts USING hash ((data->>'url')) WHERE artifact_type = 'EXTERNAL_REFERENCE';

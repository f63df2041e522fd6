-- What `q` looks through (fields-runs §6.2), in a row of its own that never changes: runs do, several times, and their trigrams would be written anew each time.
CREATE EXTENSION IF NOT EXISTS pg_trgm;

CREATE TABLE run_texts (
  run_uid uuid PRIMARY KEY, -- of runs, which are never deleted
  text    text NOT NULL     -- in lower case: title, skill, and the beginning of the prompt
);

CREATE FUNCTION run_text(title text, skill_spec text, prompt text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN lower(title || E'\n' || coalesce(skill_spec, '') || E'\n' || left(prompt, 10000));

INSERT INTO run_texts (run_uid, text) SELECT uid, run_text(title, skill_spec, prompt) FROM runs;
-- What was added last is gathered and put in its place together; little at once, since whoever adds the last of it waits.
CREATE INDEX run_texts_trigrams ON run_texts USING gin (text gin_trgm_ops) WITH (gin_pending_list_limit = 512);

CREATE FUNCTION put_run_texts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_texts (run_uid, text) SELECT uid, run_text(title, skill_spec, prompt) FROM fresh;
  RETURN NULL;
END $$;
CREATE TRIGGER run_texts_of_new AFTER INSERT ON runs REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION put_run_texts();

-- What `q` finds is put in order, and given to a team, without reading its runs: beside the text is what never changes of a run.
-- Among a million runs this takes a minute, in which runs are read, but not written. The previous version goes on beside it: what it knows of this table is there.
LOCK TABLE runs, run_texts IN SHARE ROW EXCLUSIVE MODE; -- whoever has inserted a run has put its text there

CREATE TABLE next_texts (
  run_uid    uuid NOT NULL, -- of runs, which are never deleted
  owner_uid  uuid NOT NULL,
  created_at timestamptz(3) NOT NULL,
  title      text NOT NULL,
  skill_spec text,
  text       text NOT NULL  -- in lower case: title, skill, and the beginning of the prompt
);
INSERT INTO next_texts (run_uid, owner_uid, created_at, title, skill_spec, text)
  SELECT r.uid, r.owner_uid, r.created_at, r.title, r.skill_spec, t.text FROM runs r JOIN run_texts t ON t.run_uid = r.uid;
ALTER TABLE next_texts ADD CONSTRAINT next_texts_pkey PRIMARY KEY (run_uid);
CREATE INDEX next_texts_trigrams ON next_texts USING gin (text gin_trgm_ops) WITH (gin_pending_list_limit = 512);
ANALYZE next_texts;

DROP TABLE run_texts;
ALTER TABLE next_texts RENAME TO run_texts;
ALTER INDEX next_texts_pkey RENAME TO run_texts_pkey;
ALTER INDEX next_texts_trigrams RENAME TO run_texts_trigrams;

CREATE OR REPLACE FUNCTION put_run_texts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_texts (run_uid, owner_uid, created_at, title, skill_spec, text)
    SELECT uid, owner_uid, created_at, title, skill_spec, run_text(title, skill_spec, prompt) FROM fresh;
  RETURN NULL;
END $$;

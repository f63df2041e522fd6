-- What was found in a repository when it was last read for an owner, with that owner's access to it.
CREATE TABLE repository_skills (
  owner_type text           NOT NULL,
  owner_uid  uuid           NOT NULL,
  repository text           NOT NULL, -- owner/repo, in lower case
  skills     jsonb          NOT NULL,
  failure    text           NOT NULL DEFAULT '',
  read_at    timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (owner_type, owner_uid, repository)
);
-- Skills on a worker's machine, parsed: shown while it is connected.
ALTER TABLE worker_sessions ADD COLUMN skills jsonb NOT NULL DEFAULT '[]';
-- The newest run of a skill, and a skill's runs by age.
CREATE INDEX runs_by_skill_newest ON runs (owner_uid, skill_spec, created_at DESC) WHERE skill_spec IS NOT NULL;

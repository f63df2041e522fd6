-- Whoever knows the uid may use it.
ALTER TABLE environments ADD COLUMN link_sharing boolean NOT NULL DEFAULT false;
-- To whom an environment is open besides its owner. `is_link`: reached by its uid, and good while link sharing is on.
CREATE TABLE environment_grants (
  uid             uuid           PRIMARY KEY,
  environment_uid text           NOT NULL,
  grantee_type    text           NOT NULL CHECK (grantee_type IN ('team', 'user')),
  grantee_uid     uuid           NOT NULL,
  is_link         boolean        NOT NULL DEFAULT false,
  creator_uid     text           NOT NULL,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  CONSTRAINT environment_grants_environment FOREIGN KEY (environment_uid) REFERENCES environments (uid) ON DELETE CASCADE
);
CREATE UNIQUE INDEX environment_grants_grantee ON environment_grants (environment_uid, grantee_type, grantee_uid);
CREATE INDEX environment_grants_by_grantee ON environment_grants (grantee_type, grantee_uid);

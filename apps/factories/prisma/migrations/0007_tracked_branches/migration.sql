-- Branches whose definitions a factory follows. Meaning of the columns: ../../schema.prisma.
CREATE TABLE tracked_branches (
  uid                 uuid           PRIMARY KEY,
  factory_uid         uuid           NOT NULL CONSTRAINT tracked_branches_factory_uid_fkey REFERENCES factories (uid) ON DELETE CASCADE,
  team_uid            uuid           NOT NULL,
  repository_url      text           NOT NULL,
  name                text           NOT NULL,
  is_production       boolean        NOT NULL,
  state               text           NOT NULL DEFAULT 'ACTIVE' CONSTRAINT tracked_branches_state CHECK (state IN ('ACTIVE', 'APPLYING', 'FAILED')),
  registered_head_sha text,
  applied_sha         text,
  applied_fingerprint text,
  last_applied_at     timestamptz(3),
  last_checked_at     timestamptz(3),
  apply_error         jsonb,
  check_error         jsonb,
  checks_failed       integer        NOT NULL DEFAULT 0,
  check_at            timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  version             integer        NOT NULL DEFAULT 1,
  created_at          timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at          timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  deleted_at          timestamptz(3),
  -- A retired identity is never the production branch.
  CONSTRAINT tracked_branches_retired CHECK (deleted_at IS NULL OR NOT is_production)
);
-- A factory tracks a branch once. Retired identities stay beside it.
CREATE UNIQUE INDEX tracked_branches_name ON tracked_branches (factory_uid, name) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX tracked_branches_production ON tracked_branches (factory_uid) WHERE is_production;
-- Whose head is looked up next?
CREATE INDEX tracked_branches_due ON tracked_branches (check_at) WHERE deleted_at IS NULL;
-- Which retired identities are old enough to be forgotten?
CREATE INDEX tracked_branches_retired_at ON tracked_branches (deleted_at) WHERE deleted_at IS NOT NULL;

-- With what a repository is read.
ALTER TABLE definition_sources ADD COLUMN secret_name text, ADD COLUMN username text;

-- Sources that were registered before branches were tracked.
INSERT INTO tracked_branches (uid, factory_uid, team_uid, repository_url, name, is_production, state, registered_head_sha, applied_sha, applied_fingerprint, last_applied_at)
SELECT gen_random_uuid(), s.factory_uid, f.team_uid, s.repository_url, s.branch, true, CASE s.state WHEN 'FAILED' THEN 'FAILED' ELSE 'ACTIVE' END,
       s.applied_revision, s.applied_revision, s.applied_fingerprint, s.applied_at
  FROM definition_sources s JOIN factories f ON f.uid = s.factory_uid
 WHERE s.kind = 'git' AND f.deleted_at IS NULL;

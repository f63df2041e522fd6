-- Keys that reach what their user owns personally: those the user ordered, not those that somebody else created for them. The previous release inserts
-- keys without the column: they carry the rights of their team only.
ALTER TABLE api_keys ADD COLUMN personal boolean NOT NULL DEFAULT false;

-- Existing keys: those that the person created, or that only the person could create (all_teams). A person with none of these may use the oldest key,
-- which the owner of their team was shown; it stays personal only if the person was never in another team, whose owner could have created it.
UPDATE api_keys k
   SET personal = true
 WHERE k.user_uid IS NOT NULL
   AND (k.all_teams
        OR k.created_by = k.user_uid::text
        OR (NOT EXISTS (SELECT 1 FROM api_keys o WHERE o.user_uid = k.user_uid
                           AND (o.all_teams OR o.created_by = o.user_uid::text OR o.team_uid <> k.team_uid
                                OR (o.created_at, o.uid) < (k.created_at, k.uid)))
            AND NOT EXISTS (SELECT 1 FROM memberships m WHERE m.user_uid = k.user_uid AND m.team_uid <> k.team_uid)
            AND NOT EXISTS (SELECT 1 FROM audit_log a WHERE a.type = 'millwright.member.added.v1'
                               AND split_part(a.entity_uid, ':', 2) = k.user_uid::text AND a.team_uid <> k.team_uid)));

-- When the person had their first key that reaches personal resources. Until then the creator of the account may have its only key.
-- Accounts that exist may own personal resources, also those without keys: no one else may claim them.
ALTER TABLE users ADD COLUMN claimed_at timestamptz(3);
UPDATE users SET claimed_at = now();

-- A person in no team has a key that an operator created. Joining a team makes it one of that team's keys.
ALTER TABLE api_keys DROP CONSTRAINT api_keys_check;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_owner CHECK (
  CASE kind WHEN 'api' THEN (team_uid IS NOT NULL OR all_teams) AND num_nonnulls(user_uid, agent_uid) = 1
            WHEN 'worker' THEN num_nonnulls(user_uid, agent_uid) = 0
            ELSE false END);

-- People who use the platform already join a team by accepting an invitation.
CREATE TABLE invitations (
  uid        uuid PRIMARY KEY,
  team_uid   uuid NOT NULL REFERENCES teams (uid) ON DELETE CASCADE,
  email      text NOT NULL,
  role       text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
  invited_by uuid NOT NULL REFERENCES users (uid) ON DELETE CASCADE,
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  CONSTRAINT invitations_once UNIQUE (team_uid, email)
);
CREATE INDEX invitations_by_email ON invitations (email);

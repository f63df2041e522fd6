-- Sign-in with an OpenID Connect provider. The columns are explained in ../../schema.prisma.

CREATE TABLE provider_identities (
  issuer         text           NOT NULL,
  subject        text           NOT NULL,
  user_uid       uuid           NOT NULL REFERENCES users (uid) ON DELETE CASCADE,
  verified_email text           CHECK (verified_email = lower(verified_email)),
  created_at     timestamptz(3) NOT NULL,
  last_used_at   timestamptz(3) NOT NULL,
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX provider_identities_by_user ON provider_identities (user_uid);

-- Members whom the claims of the provider made members. Each sign-in of the person updates or removes them.
ALTER TABLE memberships ADD COLUMN from_claims boolean NOT NULL DEFAULT false;

-- Invitations of people without an account of their own. They are accepted with a verified address only.
ALTER TABLE invitations ADD COLUMN verified_only boolean NOT NULL DEFAULT false;

-- Links that sign a person in once.
CREATE TABLE sign_in_links (
  token_hash text           PRIMARY KEY,
  user_uid   uuid           NOT NULL REFERENCES users (uid) ON DELETE CASCADE,
  expires_at timestamptz(3) NOT NULL
);
CREATE INDEX sign_in_links_by_user ON sign_in_links (user_uid);

-- Sessions of browsers. The columns are explained in ../../schema.prisma.
CREATE TABLE sessions (
  uid            uuid           PRIMARY KEY,
  token_hash     text           NOT NULL,
  previous_hash  text,
  previous_until timestamptz(3),
  user_uid       uuid           REFERENCES users (uid) ON DELETE CASCADE,
  key_uid        uuid           REFERENCES api_keys (uid) ON DELETE CASCADE, -- revoking a key ends its sessions
  created_at     timestamptz(3) NOT NULL,
  rotated_at     timestamptz(3) NOT NULL,
  last_used_at   timestamptz(3) NOT NULL,
  expires_at     timestamptz(3) NOT NULL,
  CONSTRAINT sessions_owner CHECK (num_nonnulls(user_uid, key_uid) > 0)
);
-- Read by every request with a session.
CREATE UNIQUE INDEX sessions_token_hash_key ON sessions (token_hash);
CREATE INDEX sessions_by_previous_hash ON sessions (previous_hash);
-- For signing out everywhere, and for revocation with the key.
CREATE INDEX sessions_by_user ON sessions (user_uid);
CREATE INDEX sessions_by_key ON sessions (key_uid);
-- For pruning.
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
CREATE INDEX sessions_by_use ON sessions (last_used_at);

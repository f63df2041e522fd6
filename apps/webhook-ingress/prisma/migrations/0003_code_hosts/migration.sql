-- One address per code-host connection, and what was delivered there. Meaning of the columns: ../../schema.prisma.

CREATE TABLE code_host_webhooks (
  code_host_uid uuid           PRIMARY KEY,
  team_uid      uuid           NOT NULL,
  provider      text           NOT NULL CONSTRAINT code_host_webhooks_provider CHECK (provider IN ('github', 'gitlab')),
  bot_login     text           NOT NULL,
  enabled       boolean        NOT NULL,
  secret_sealed text,
  retired       boolean        NOT NULL DEFAULT false,
  version       integer        NOT NULL DEFAULT 1,
  created_at    timestamptz(3) NOT NULL,
  updated_at    timestamptz(3) NOT NULL,
  CONSTRAINT code_host_webhooks_retired CHECK (NOT retired OR secret_sealed IS NULL)
);

CREATE TABLE code_host_deliveries (
  uid           uuid           PRIMARY KEY,
  code_host_uid uuid           NOT NULL,
  team_uid      uuid           NOT NULL,
  provider      text           NOT NULL,
  event         text           NOT NULL DEFAULT '',
  action        text           NOT NULL DEFAULT '',
  outcome       text           NOT NULL CONSTRAINT code_host_deliveries_outcome CHECK (outcome IN ('accepted', 'duplicate', 'rejected_auth', 'rejected_invalid_json', 'rejected_too_large')),
  identity_kind text,
  delivery_id   text,
  size_bytes    bigint         NOT NULL,
  received_at   timestamptz(3) NOT NULL,
  headers       jsonb,
  body          bytea,
  CONSTRAINT code_host_deliveries_identified CHECK (outcome NOT IN ('accepted', 'duplicate') OR (identity_kind IS NOT NULL AND delivery_id IS NOT NULL)),
  CONSTRAINT code_host_deliveries_body CHECK ((outcome = 'accepted') = (body IS NOT NULL AND headers IS NOT NULL))
);
-- One identity is accepted once. Rejected attempts and duplicates claim nothing.
CREATE UNIQUE INDEX code_host_deliveries_identity ON code_host_deliveries (code_host_uid, identity_kind, delivery_id) WHERE outcome = 'accepted';
-- A connection's log, newest first; and what of it is old.
CREATE INDEX code_host_deliveries_log ON code_host_deliveries (code_host_uid, received_at DESC, uid DESC);

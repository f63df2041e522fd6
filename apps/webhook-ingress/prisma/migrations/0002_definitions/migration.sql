-- Webhooks that files define (architecture §6): staged inert, put in force with the version of their factory.

-- What the file said when the webhook was last projected: one that it says again is left as it is.
ALTER TABLE webhooks ADD COLUMN defined jsonb;

CREATE TABLE definition_stages (
  factory_uid uuid           NOT NULL,
  version     bigint         NOT NULL,
  team_uid    uuid           NOT NULL,
  webhooks    jsonb          NOT NULL,
  created_at  timestamptz(3) NOT NULL,
  PRIMARY KEY (factory_uid, version)
);

CREATE TABLE definition_versions (
  factory_uid uuid   PRIMARY KEY,
  version     bigint NOT NULL
);

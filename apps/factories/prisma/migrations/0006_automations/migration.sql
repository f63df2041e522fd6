-- Automations, the events that they look at, and what was decided. Meaning of the columns: ../../schema.prisma.

CREATE TABLE automations (
  uid          uuid           PRIMARY KEY,
  factory_uid  uuid           NOT NULL,
  team_uid     uuid           NOT NULL,
  name         text           NOT NULL CONSTRAINT automations_name CHECK (name <> ''),
  enabled      boolean        NOT NULL,
  definition   jsonb          NOT NULL,
  providers    text[]         NOT NULL,
  management   text           NOT NULL CONSTRAINT automations_management CHECK (management IN ('live', 'files')),
  defined      jsonb,
  creator_type text           NOT NULL,
  creator_uid  text           NOT NULL,
  version      integer        NOT NULL DEFAULT 1,
  created_at   timestamptz(3) NOT NULL,
  updated_at   timestamptz(3) NOT NULL,
  deleted_at   timestamptz(3),
  CONSTRAINT automations_defined CHECK ((management = 'files') = (defined IS NOT NULL))
);
-- The automations of a factory, oldest first.
CREATE INDEX automations_by_factory ON automations (factory_uid, created_at, uid) WHERE deleted_at IS NULL;
-- Events of code hosts belong to a team.
CREATE INDEX automations_by_team ON automations (team_uid) WHERE deleted_at IS NULL;
-- A file defines one automation of its factory.
CREATE UNIQUE INDEX automations_file ON automations (factory_uid, name) WHERE deleted_at IS NULL AND management = 'files';

CREATE TABLE trigger_events (
  factory_uid  uuid           NOT NULL,
  uid          uuid           NOT NULL,
  team_uid     uuid           NOT NULL,
  provider     text           NOT NULL,
  event        text           NOT NULL,
  delivery_uid uuid,
  subject      jsonb          NOT NULL,
  request_id   text           NOT NULL,
  occurred_at  timestamptz(3) NOT NULL,
  decided_at   timestamptz(3) NOT NULL,
  PRIMARY KEY (factory_uid, uid)
);
-- What became of a delivery, replays included.
CREATE INDEX trigger_events_by_delivery ON trigger_events (factory_uid, delivery_uid) WHERE delivery_uid IS NOT NULL;
CREATE INDEX trigger_events_age ON trigger_events (decided_at);

CREATE TABLE decisions (
  factory_uid     uuid           NOT NULL,
  event_uid       uuid           NOT NULL,
  automation_uid  uuid           NOT NULL,
  automation_name text           NOT NULL,
  outcome         text           NOT NULL CONSTRAINT decisions_outcome CHECK (outcome IN ('pending', 'fired', 'not_matched', 'disabled', 'suppressed', 'failed')),
  explanation     text           NOT NULL,
  checks          jsonb          NOT NULL,
  request         jsonb,
  run_uid         uuid,
  decided_at      timestamptz(3) NOT NULL,
  PRIMARY KEY (factory_uid, event_uid, automation_uid),
  CONSTRAINT decisions_event FOREIGN KEY (factory_uid, event_uid) REFERENCES trigger_events (factory_uid, uid) ON DELETE CASCADE,
  CONSTRAINT decisions_fired CHECK ((outcome = 'fired') = (run_uid IS NOT NULL)),
  CONSTRAINT decisions_pending CHECK ((outcome = 'pending') = (request IS NOT NULL))
);
-- Why did this automation fire, or not? Newest first.
CREATE INDEX decisions_of_automation ON decisions (factory_uid, automation_uid, decided_at DESC, event_uid DESC);
CREATE INDEX decisions_of_factory ON decisions (factory_uid, decided_at DESC, event_uid DESC, automation_uid DESC);
-- When did it fire last?
CREATE INDEX decisions_fired_last ON decisions (automation_uid, decided_at DESC) WHERE run_uid IS NOT NULL;

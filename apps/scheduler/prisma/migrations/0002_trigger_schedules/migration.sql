-- When automations are triggered by time. Meaning of the columns: ../../schema.prisma.

CREATE TABLE trigger_schedules (
  uid            uuid           PRIMARY KEY,
  automation_uid uuid           NOT NULL,
  factory_uid    uuid           NOT NULL,
  team_uid       uuid           NOT NULL,
  name           text           NOT NULL,
  cron           text           NOT NULL,
  next_slot      timestamptz(3),
  last_slot      timestamptz(3),
  version        integer        NOT NULL,
  CONSTRAINT trigger_schedules_forward CHECK (next_slot > last_slot)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX trigger_schedules_automation_uid_name_cron_key ON trigger_schedules (automation_uid, name, cron);
CREATE INDEX trigger_schedules_factory_uid_idx ON trigger_schedules (factory_uid);
CREATE INDEX trigger_schedules_team_uid_idx ON trigger_schedules (team_uid);
-- What comes due.
CREATE INDEX trigger_schedules_due ON trigger_schedules (next_slot) WHERE next_slot IS NOT NULL;

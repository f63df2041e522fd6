-- Spending caps per period, of a team or of one of its factories, schedules or automations. The root of a run decides which of them cover
-- its whole tree. A row is the mutex of its budget: reservations and usage lock the budgets concerned by uid, after the run.
CREATE TABLE budgets (
  uid                uuid           PRIMARY KEY,
  team_uid           uuid           NOT NULL,
  scope              text           NOT NULL CHECK (scope IN ('team', 'factory', 'schedule', 'automation')),
  scope_uid          uuid           NOT NULL, -- of scope team: the team itself
  period             text           NOT NULL CHECK (period IN ('day', 'week', 'month', 'total')),
  limit_micros       bigint         NOT NULL CHECK (limit_micros > 0),
  thresholds_percent integer[]      NOT NULL DEFAULT '{50,80,100}',
  version            bigint         NOT NULL DEFAULT 1, -- raised by every change and every threshold reached
  created_at         timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  updated_at         timestamptz(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  CONSTRAINT budgets_once UNIQUE (team_uid, scope, scope_uid, period)
);

-- Running sums: raised in the transaction that records the usage of a call.
CREATE TABLE budget_periods (
  budget_uid         uuid           NOT NULL REFERENCES budgets (uid) ON DELETE CASCADE,
  period_start       timestamptz(3) NOT NULL,
  spent_micros       bigint         NOT NULL DEFAULT 0,
  thresholds_reached integer[]      NOT NULL DEFAULT '{}', -- already published, once each
  PRIMARY KEY (budget_uid, period_start)
) WITH (fillfactor = 50);

-- What a reservation counts against, as '<scope> <uid>'; of personal runs, null and empty.
ALTER TABLE cost_reservations ADD COLUMN team_uid uuid;
ALTER TABLE cost_reservations ADD COLUMN scopes text[] NOT NULL DEFAULT '{}';
CREATE INDEX cost_reservations_by_team ON cost_reservations (team_uid) WHERE team_uid IS NOT NULL;

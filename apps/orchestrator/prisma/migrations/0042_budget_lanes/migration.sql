-- When an exhausted budget covers something again: the start of its next period, or never ("infinity"). Null or past: it is not exhausted.
ALTER TABLE budgets ADD COLUMN exhausted_until timestamptz(3);
CREATE INDEX budgets_exhausted ON budgets (team_uid) WHERE exhausted_until IS NOT NULL;
UPDATE budgets b
   SET exhausted_until = CASE b.period
         WHEN 'total' THEN 'infinity'
         ELSE (p.period_start AT TIME ZONE 'UTC' + ('1 ' || b.period)::interval) AT TIME ZONE 'UTC' END
  FROM budget_periods p
 WHERE p.budget_uid = b.uid AND p.spent_micros >= b.limit_micros
   AND p.period_start = (SELECT max(newest.period_start) FROM budget_periods newest WHERE newest.budget_uid = b.uid);

-- Queued executions that an exhausted budget covers wait in lanes of their own, which no claim reads. See store/budget-lanes.ts.
ALTER TABLE lanes ADD COLUMN waits_for_budget uuid; -- no foreign key: a deleted budget lets its executions go
ALTER TABLE lanes DROP CONSTRAINT lanes_key;
ALTER TABLE lanes ADD CONSTRAINT lanes_key UNIQUE NULLS NOT DISTINCT (owner_uid, agent_uid, factory_uid, worker_host, harness, image, arch, is_background, waits_for_budget);
CREATE INDEX lanes_waiting_for_budget ON lanes (waits_for_budget) WHERE waits_for_budget IS NOT NULL;

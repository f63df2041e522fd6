-- An event on an item to which a task is bound continues the task; and which tasks are a ticket's?
ALTER TABLE decisions
  DROP CONSTRAINT decisions_outcome,
  DROP CONSTRAINT decisions_fired,
  ADD CONSTRAINT decisions_outcome CHECK (outcome IN ('pending', 'fired', 'continued', 'not_matched', 'disabled', 'suppressed', 'failed')),
  ADD CONSTRAINT decisions_fired CHECK ((outcome IN ('fired', 'continued')) = (run_uid IS NOT NULL));
CREATE INDEX tasks_by_ticket ON tasks (factory_uid, lower(ticket_id)) WHERE deleted_at IS NULL AND ticket_id IS NOT NULL;

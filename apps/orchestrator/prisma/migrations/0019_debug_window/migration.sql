-- DEBUG: the setup of an execution failed, and its run with it; the worker keeps workspace and shell until the window is over.
ALTER TABLE executions DROP CONSTRAINT executions_state_check;
ALTER TABLE executions ADD CONSTRAINT executions_state_check
  CHECK (state IN ('QUEUED', 'OFFERED', 'CLAIMED', 'RUNNING', 'STOPPING', 'DEBUG', 'ENDED'));
ALTER TABLE executions ADD COLUMN debug_since timestamptz(3), ADD COLUMN debug_until timestamptz(3);

-- The tasks of one stage of all factories of a team, most recently changed first.
CREATE INDEX IF NOT EXISTS tasks_of_team ON tasks (team_uid, stage, updated_at, uid)
  WHERE deleted_at IS NULL;

-- Whose runs a schedule may not create any more: its creator left the team, or may not create runs there. Who resumes it becomes its creator.
ALTER TABLE schedules ADD COLUMN creator_left boolean NOT NULL DEFAULT false;
-- The schedules of a person who leaves a team.
CREATE INDEX schedules_by_creator ON schedules (owner_uid, creator_uid) WHERE deleted_at IS NULL;

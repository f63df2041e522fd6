-- Teams take turns: what is due of one team, and how much of each is being carried out. Items of no team share a turn.
CREATE INDEX work_items_by_team ON stream.work_items ((coalesce(team_uid, '00000000-0000-0000-0000-000000000000'::uuid)), due_at, id) WHERE state IN ('waiting', 'running');
CREATE INDEX work_items_running ON stream.work_items ((coalesce(team_uid, '00000000-0000-0000-0000-000000000000'::uuid))) WHERE state = 'running';

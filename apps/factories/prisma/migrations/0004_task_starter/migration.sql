-- Who started the run that a task was made of; null for tasks made before this was kept.
ALTER TABLE tasks ADD COLUMN starter_uid text;

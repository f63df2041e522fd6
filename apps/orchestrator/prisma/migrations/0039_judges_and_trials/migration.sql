-- An execution that ended without a snapshot because its workspace was as its clones: a judge of the run starts from fresh ones.
ALTER TABLE executions ADD COLUMN workspace_unchanged boolean NOT NULL DEFAULT false;
-- Which runs start from this snapshot of another run? It stays stored while one of them is active.
CREATE INDEX IF NOT EXISTS runs_by_borrowed_snapshot ON runs ((frozen #>> '{workspace,snapshot_key}')) WHERE frozen #>> '{workspace,snapshot_key}' IS NOT NULL;
-- Judges and trials wait in lanes of their own, behind runs of people.
ALTER TABLE lanes ADD COLUMN is_background boolean NOT NULL DEFAULT false;
ALTER TABLE lanes DROP CONSTRAINT lanes_key;
ALTER TABLE lanes ADD CONSTRAINT lanes_key UNIQUE NULLS NOT DISTINCT (owner_uid, agent_uid, factory_uid, worker_host, harness, image, arch, is_background);

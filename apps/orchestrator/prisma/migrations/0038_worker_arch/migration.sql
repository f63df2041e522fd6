-- Which architecture does a run need, and which has a worker's machine? null, and "" of a worker: any.
ALTER TABLE worker_sessions ADD COLUMN arch text NOT NULL DEFAULT '';
ALTER TABLE lanes ADD COLUMN arch text;
ALTER TABLE lanes DROP CONSTRAINT lanes_key;
ALTER TABLE lanes ADD CONSTRAINT lanes_key UNIQUE NULLS NOT DISTINCT (owner_uid, agent_uid, factory_uid, worker_host, harness, image, arch);
-- Until now x86_64 also stood for "not named", which asks for nothing.
ALTER TABLE runners ALTER COLUMN arch SET DEFAULT '';
UPDATE runners SET arch = '' WHERE arch = 'x86_64';

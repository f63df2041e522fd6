-- An image is a requirement like a harness: it decides which workers may take a lane's executions.
ALTER TABLE lanes ADD COLUMN image text; -- null: any worker may take it
ALTER TABLE lanes DROP CONSTRAINT lanes_owner_uid_agent_uid_factory_uid_worker_host_harness_key;
ALTER TABLE lanes ADD CONSTRAINT lanes_key UNIQUE NULLS NOT DISTINCT (owner_uid, agent_uid, factory_uid, worker_host, harness, image);
ALTER TABLE worker_sessions ADD COLUMN images text[] NOT NULL DEFAULT '{}'; -- empty: it takes any

-- What people say about a team, agent or factory in the queue; limit and weight are there already.
ALTER TABLE capacity ADD COLUMN paused boolean NOT NULL DEFAULT false;        -- nothing new is offered
ALTER TABLE capacity ADD COLUMN priority integer NOT NULL DEFAULT 0;          -- of an agent, among the runs of its owner
ALTER TABLE capacity ADD COLUMN settings_version bigint NOT NULL DEFAULT 0;   -- of the record that said so; older ones are passed over

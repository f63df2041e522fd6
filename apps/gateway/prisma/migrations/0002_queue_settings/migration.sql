-- What people say about a team or agent in the queue. Described in prisma/schema.prisma; checks are here only.
ALTER TABLE teams ADD COLUMN queue_weight double precision NOT NULL DEFAULT 1 CHECK (queue_weight > 0);
ALTER TABLE teams ADD COLUMN queue_paused boolean NOT NULL DEFAULT false;
ALTER TABLE agents ADD COLUMN queue_priority integer NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN queue_paused boolean NOT NULL DEFAULT false;

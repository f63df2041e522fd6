-- What people say about a factory in the queue. Described in prisma/schema.prisma; checks are here only.
ALTER TABLE factories ADD COLUMN concurrency_limit integer NOT NULL DEFAULT 0 CHECK (concurrency_limit >= 0);
ALTER TABLE factories ADD COLUMN queue_paused boolean NOT NULL DEFAULT false;

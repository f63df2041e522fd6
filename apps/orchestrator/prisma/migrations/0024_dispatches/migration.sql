-- Executions that a worker has taken in order to have another machine run them: who dispatched them, and the hash of the offer
-- token by which exactly one worker process takes the lease over. Both go with the lease.
ALTER TABLE leases ADD COLUMN dispatcher_uid uuid, ADD COLUMN offer_hash bytea;

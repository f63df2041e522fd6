-- Which tasks are about what is at this address? Tickets' addresses are kept as they were written, and compared without what writers add to them.
-- Over a large table an operator makes it beforehand, CONCURRENTLY: see docs/operations/processes.md.
CREATE INDEX IF NOT EXISTS runs_by_ticket ON runs USING hash (lower(regexp_replace(btrim(metadata->>'ticket_url'), '/*([?#].*)?$', ''))) WHERE metadata->>'ticket_url' IS NOT NULL AND parent_run_uid IS NULL;

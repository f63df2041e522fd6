-- Rebuilds of the read models, and when facts of a pull request were stored last. Meaning of the columns: ../../schema.prisma.

CREATE TABLE rebuilds (
  uid        uuid           PRIMARY KEY,
  phase      text           NOT NULL DEFAULT 'runs' CONSTRAINT rebuilds_phase CHECK (phase IN ('runs', 'deliveries', 'done')),
  page       integer        NOT NULL DEFAULT 0,
  page_token text           NOT NULL DEFAULT '',
  runs       bigint         NOT NULL DEFAULT 0,
  deliveries bigint         NOT NULL DEFAULT 0,
  failures   bigint         NOT NULL DEFAULT 0,
  last_error text,
  started_at timestamptz(3) NOT NULL DEFAULT now(),
  ended_at   timestamptz(3)
);
-- One rebuild at a time.
CREATE UNIQUE INDEX rebuilds_active ON rebuilds ((true)) WHERE phase <> 'done';

-- Unknown for facts that were stored before.
ALTER TABLE pull_requests ADD COLUMN recorded_at timestamptz(3);

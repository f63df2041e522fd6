-- Tables of libs/work. The first migration of a service that uses it contains this text.
CREATE SCHEMA IF NOT EXISTS stream;

-- Calls to other systems, written in the transaction that decided them.
CREATE TABLE stream.work_items (
  id          bigint         GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind        text           NOT NULL,
  key         text           NOT NULL, -- the cause; also the idempotency key of the call
  team_uid    uuid,
  payload     jsonb          NOT NULL,
  state       text           NOT NULL DEFAULT 'waiting'
    CHECK (state IN ('waiting', 'running', 'done', 'dead_lettered')),
  due_at      timestamptz(3) NOT NULL, -- waiting: not before; running: when the lease ends
  lease       uuid,                    -- the claim that may finish the item
  attempts    integer        NOT NULL DEFAULT 0,
  last_error  text,
  traceparent text,                    -- W3C trace context of the operation that decided it
  created_at  timestamptz(3) NOT NULL,
  ended_at    timestamptz(3),
  UNIQUE (kind, key)
) WITH (fillfactor = 80);
CREATE INDEX work_items_due ON stream.work_items (due_at)
  WHERE state IN ('waiting', 'running');
-- Teams take turns: the due items of a team, and the number of running items of each team. Items without a team share a
-- turn.
CREATE INDEX work_items_by_team
  ON stream.work_items ((coalesce(team_uid, '00000000-0000-0000-0000-000000000000'::uuid)), due_at, id)
  WHERE state IN ('waiting', 'running');
CREATE INDEX work_items_running
  ON stream.work_items ((coalesce(team_uid, '00000000-0000-0000-0000-000000000000'::uuid)))
  WHERE state = 'running';
CREATE INDEX work_items_dead_lettered ON stream.work_items (kind)
  WHERE state = 'dead_lettered';
CREATE INDEX work_items_done ON stream.work_items (ended_at)
  WHERE state = 'done';

-- The price book of compute and the platform with its re-pricings, and entries that correct others.

ALTER TABLE compute_prices
  DROP CONSTRAINT compute_prices_effective_from_key,
  ADD COLUMN created_at      timestamptz(3) NOT NULL DEFAULT now(),
  ADD COLUMN created_by_type text, -- NULL: added by a migration, or in SQL
  ADD COLUMN created_by_uid  text;

CREATE FUNCTION refuse_price_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'Versions of the price book cannot be changed; insert another version.';
END $$;
CREATE TRIGGER compute_prices_immutable BEFORE UPDATE ON compute_prices FOR EACH STATEMENT EXECUTE FUNCTION refuse_price_change();

-- How far the runs have been priced again that a version with an earlier `effective_from` affects.
CREATE TABLE repricings (
  version       integer        PRIMARY KEY,
  after_run_uid uuid,
  run_count     bigint         NOT NULL DEFAULT 0,
  completed_at  timestamptz(3)
);

CREATE TABLE idempotency_keys (
  principal_uid text           NOT NULL,
  operation     text           NOT NULL,
  key           text           NOT NULL,
  body_hash     char(64)       NOT NULL,
  response      jsonb          NOT NULL,
  created_at    timestamptz(3) NOT NULL,
  PRIMARY KEY (principal_uid, operation, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- Adjustments name the entry that they correct. `unpriced_change`: -1 if it had no price before, 1 if it has none since.
ALTER TABLE ledger_entries
  ADD COLUMN corrects        uuid,
  ADD COLUMN unpriced_change smallint;

ALTER TABLE ledger_entries DISABLE TRIGGER ledger_entries_append_only;
UPDATE ledger_entries a
   SET corrects = o.source_key, unpriced_change = -1
  FROM ledger_entries o
 WHERE a.kind = 'adjustment'
   AND o.kind = 'model_call'
   AND o.run_uid = a.run_uid
   AND o.quantity ->> 'call_id' = a.quantity ->> 'call_id';
ALTER TABLE ledger_entries ENABLE TRIGGER ledger_entries_append_only;

-- Calls that got a price later have been counted as unpriced.
UPDATE cost_group_days d
   SET unpriced_model_calls = d.unpriced_model_calls - priced.calls
  FROM (SELECT factory_uid, g.dimension, utc_day(occurred_at) AS day, g.key, g.creator_type, count(*) AS calls
          FROM ledger_entries l
         CROSS JOIN LATERAL (VALUES ('source', l.source, ''), ('user', l.creator_uid, l.creator_type), ('agent', l.agent_uid, ''), ('model', l.model_id, ''))
                         AS g (dimension, key, creator_type)
         WHERE l.unpriced_change = -1
         GROUP BY 1, 2, 3, 4, 5) priced
 WHERE (d.factory_uid, d.dimension, d.day, d.key, d.creator_type)
     = (priced.factory_uid, priced.dimension, priced.day, priced.key, priced.creator_type);

-- What corrects an entry.
CREATE INDEX ledger_entries_by_corrected ON ledger_entries (corrects) WHERE corrects IS NOT NULL;
-- What a version of the price book has corrected.
CREATE INDEX ledger_entries_corrections ON ledger_entries (component, price_version) INCLUDE (micros) WHERE kind = 'adjustment';

CREATE OR REPLACE FUNCTION sum_new_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO cost_group_days AS d (factory_uid, dimension, day, key, creator_type, inference_micros, compute_micros, platform_micros,
                                    model_calls, unpriced_model_calls, compute_intervals, unpriced_compute_intervals)
  SELECT factory_uid, g.dimension, utc_day(occurred_at), g.key, g.creator_type,
         coalesce(sum(micros) FILTER (WHERE component = 'inference'), 0),
         coalesce(sum(micros) FILTER (WHERE component = 'compute'), 0),
         coalesce(sum(micros) FILTER (WHERE component = 'platform'), 0),
         count(*) FILTER (WHERE kind = 'model_call'),
         count(*) FILTER (WHERE kind = 'model_call' AND micros IS NULL) + coalesce(sum(unpriced_change) FILTER (WHERE component = 'inference'), 0),
         count(*) FILTER (WHERE kind = 'compute_interval'),
         count(*) FILTER (WHERE kind = 'compute_interval' AND micros IS NULL) + coalesce(sum(unpriced_change) FILTER (WHERE component = 'compute'), 0)
    FROM new_rows n
   CROSS JOIN LATERAL (VALUES ('source', n.source, ''), ('user', n.creator_uid, n.creator_type), ('agent', n.agent_uid, ''), ('model', n.model_id, ''))
                   AS g (dimension, key, creator_type)
   GROUP BY 1, 2, 3, 4, 5
  ON CONFLICT (factory_uid, dimension, day, key, creator_type)
  DO UPDATE SET inference_micros = d.inference_micros + excluded.inference_micros,
                compute_micros = d.compute_micros + excluded.compute_micros,
                platform_micros = d.platform_micros + excluded.platform_micros,
                model_calls = d.model_calls + excluded.model_calls,
                unpriced_model_calls = d.unpriced_model_calls + excluded.unpriced_model_calls,
                compute_intervals = d.compute_intervals + excluded.compute_intervals,
                unpriced_compute_intervals = d.unpriced_compute_intervals + excluded.unpriced_compute_intervals;
  INSERT INTO tree_costs AS t (root_run_uid, component, model_id, factory_uid, micros)
  SELECT owner_root_uid, component, model_id, factory_uid, coalesce(sum(micros), 0)
    FROM new_rows
   GROUP BY 1, 2, 3, 4
  ON CONFLICT (root_run_uid, component, model_id) DO UPDATE SET micros = t.micros + excluded.micros;
  RETURN NULL;
END $$;

-- Credits that a platform administrator has granted to a team. Append-only.
CREATE TABLE credit_grants (
  uid             uuid           PRIMARY KEY,
  team_uid        uuid           NOT NULL,
  micros          bigint         NOT NULL CONSTRAINT credit_grants_micros CHECK (micros > 0),
  note            text           NOT NULL,
  granted_at      timestamptz(3) NOT NULL,
  expires_at      timestamptz(3) CONSTRAINT credit_grants_expires CHECK (expires_at > granted_at),
  created_by_type text           NOT NULL,
  created_by_uid  text           NOT NULL
);
CREATE INDEX credit_grants_by_team ON credit_grants (team_uid, granted_at DESC, uid);

CREATE FUNCTION refuse_grant_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'Credit grants cannot be changed or deleted.';
END $$;
CREATE TRIGGER credit_grants_append_only BEFORE UPDATE OR DELETE ON credit_grants FOR EACH STATEMENT EXECUTE FUNCTION refuse_grant_change();

-- The factories of a team, for what it has spent.
CREATE INDEX run_facts_by_team ON run_facts (team_uid, factory_uid);

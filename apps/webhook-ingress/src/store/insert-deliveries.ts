import { Batcher, isConflict, isTransient, type Database } from "@millwright/database";
import { EVENTS_APPENDED } from "@millwright/events";
import { DELIVERIES_PER_WINDOW, FAILURES_PER_ADDRESS, WINDOW_MS } from "../domain/limits.ts";
import { DELIVERIES, RECENT } from "./rate-windows.ts";

/** An authenticated delivery. The names are those of the statement's record. */
export type DeliveryRecord = {
  readonly webhook: string;
  readonly team: string;
  readonly factory: string;
  /** The webhook's version and its sealed secret when the sender was authenticated. */
  readonly version: number;
  readonly sealed: string | null;
  readonly failures: string;
  readonly at: Date;
  readonly uid: string;
  readonly outcome: string;
  readonly kind: string | null;
  readonly id: string | null;
  readonly size: number;
  readonly payload: Uint8Array | undefined;
  readonly event: string;
  readonly request: string;
  readonly trace: string | null;
};

/** `stale`: the webhook has changed or refuses the address; nothing was counted or stored. */
export type InsertResult = "inserted" | "not_inserted" | "limited" | "stale";

/**
 * The next batch is sent while the previous one waits for the disk. A statement costs four times as much as one more
 * delivery in it.
 */
const BATCHING = { concurrency: 2, isPerTurn: true };

/**
 * Returns a function that counts a delivery against its webhook's budget, claims its identity, stores it and publishes
 * its event. Deliveries that arrive during an insert share the next statement; of concurrent copies exactly one is
 * inserted. A counted delivery that is not inserted is a duplicate or was rejected: a separate statement logs it, so
 * that the statement of the batch stays fast.
 */
export function deliveryInserter(database: Database): (delivery: DeliveryRecord) => Promise<InsertResult> {
  const batcher = new Batcher(
    (deliveries: readonly DeliveryRecord[]) => insertDeliveries(database, deliveries),
    (error) => !isTransient(error) || isConflict(error),
    BATCHING,
  );
  return async (delivery) => {
    const result = await batcher.add(delivery);
    if (result === "not_inserted") await logDelivery(database, delivery);
    return result;
  };
}

async function insertDeliveries(database: Database, deliveries: readonly DeliveryRecord[]): Promise<InsertResult[]> {
  let from = 1;
  const given = deliveries.map(({ payload, ...delivery }, n) => {
    const record = { n, from: payload ? from : null, ...delivery };
    from += payload?.length ?? 0;
    return record;
  });
  const payloads = deliveries.flatMap(({ payload }) => payload ?? []);
  given.sort((a, b) => (a.webhook < b.webhook ? -1 : 1));
  const isOnePerWebhook = given.every(({ webhook }, n) => webhook !== given[n + 1]?.webhook);
  const { rows } = await database.sql.query<{ n: number; result: InsertResult }>(
    isOnePerWebhook ? INSERT_ONE_PER_WEBHOOK : INSERT_SEVERAL_PER_WEBHOOK,
    [JSON.stringify(given), payloads.length === 1 ? payloads[0] : Buffer.concat(payloads)],
  );
  const results = Array<InsertResult>(deliveries.length).fill("stale");
  for (const row of rows) results[row.n] = row.result;
  if (results.includes("inserted")) database.sql.announce?.(EVENTS_APPENDED);
  return results;
}

async function logDelivery(
  database: Database,
  { uid, webhook, team, factory, outcome, kind, id, size, at }: DeliveryRecord,
): Promise<void> {
  await database.sql.query(
    `INSERT INTO deliveries (uid, webhook_uid, team_uid, factory_uid, outcome, dedupe_kind, dedupe_key, size_bytes, received_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [uid, webhook, team, factory, outcome === "accepted" ? "duplicate" : outcome, kind, id, size, at],
  );
}

/**
 * Several deliveries per webhook: all are counted with the newest time, and the first `accepted_count` of them are
 * within the limit.
 */
const SEVERAL_PER_WEBHOOK = {
  nth: "row_number() OVER (PARTITION BY g.webhook ORDER BY g.n)",
  counted: `array_fill(max(at), ARRAY[least(count(*), ${DELIVERIES_PER_WINDOW})::integer]),
         least(count(*), ${DELIVERIES_PER_WINDOW})
    FROM given GROUP BY webhook ORDER BY webhook`,
};
/** At most one delivery per webhook, at three quarters of the cost. */
const ONE_PER_WEBHOOK = { nth: "1", counted: "ARRAY[at], 1 FROM given" };

/** Returns SQL of the number of hits at or before a time; hits are sorted. */
const hitsUntil = (at: string): string => `width_bucket(${at}, w.hits)`;
const EXPIRED = hitsUntil(`excluded.hits[1] - interval '${WINDOW_MS} milliseconds'`);
const BEFORE = hitsUntil("excluded.hits[1]");
const CAPACITY = `least(excluded.accepted_count, greatest(0, ${DELIVERIES_PER_WINDOW} - cardinality(w.hits) + ${EXPIRED}))`;

// $1 the deliveries without their payloads, ordered by webhook; $2 the concatenated payloads.
// JSON, because PostgreSQL plans arrays at each use; subqueries, because joins would scan small tables. Budgets are locked in the
// order of webhooks, so that replicas cannot deadlock; the lock of a webhook's budget also serializes claims of its identities.
const insertSql = ({ nth, counted }: typeof ONE_PER_WEBHOOK): string => `
WITH given AS MATERIALIZED (
  SELECT g.*, ${nth} AS nth
    FROM json_to_recordset($1::json) AS g (n integer, "from" integer, webhook uuid, team uuid, factory uuid, version integer,
                                           sealed text, failures text, at timestamptz, uid uuid, outcome text, kind text,
                                           id text, size bigint, event uuid, request text, trace text)
   WHERE (SELECT w.enabled AND w.deleted_at IS NULL AND w.version = g.version AND g.sealed IS NOT DISTINCT FROM
                 CASE WHEN w.secret_name IS NULL THEN w.secret_sealed
                      ELSE (SELECT s.sealed FROM team_secrets s WHERE s.team_uid = w.team_uid AND s.name = w.secret_name) END
            FROM webhooks w WHERE w.uid = g.webhook)
     AND coalesce((SELECT (SELECT count(*) FROM (${RECENT("g.at", "f.hits")}) h) < ${FAILURES_PER_ADDRESS}
                     FROM rate_windows f WHERE f.receiver_uid = g.webhook AND f.bucket = g.failures), true)
), counted AS (
  INSERT INTO rate_windows AS w (receiver_uid, bucket, hits, accepted_count)
  SELECT webhook, '${DELIVERIES}', ${counted}
  ON CONFLICT (receiver_uid, bucket) DO UPDATE
     SET hits = w.hits[${EXPIRED} + 1:${BEFORE}] || array_fill(excluded.hits[1], ARRAY[${CAPACITY}]) || w.hits[${BEFORE} + 1:],
         accepted_count = ${CAPACITY}
  RETURNING receiver_uid, accepted_count
), inserted AS (
  INSERT INTO deliveries (uid, webhook_uid, team_uid, factory_uid, outcome, dedupe_kind, dedupe_key, size_bytes, received_at,
                          payload)
  SELECT g.uid, g.webhook, g.team, g.factory, g.outcome, g.kind, g.id, g.size, g.at,
         substring($2::bytea FROM g."from" FOR g.size::integer)
    FROM given g JOIN counted c ON c.receiver_uid = g.webhook AND g.nth <= c.accepted_count WHERE g.outcome = 'accepted'
  ON CONFLICT (webhook_uid, dedupe_kind, dedupe_key) WHERE outcome = 'accepted' DO NOTHING
  RETURNING uid
), published AS (
  INSERT INTO stream.event_pending (uid, type, entity, entity_uid, entity_version, team_uid, actor_type, actor_uid, request_id,
                                    traceparent, occurred_at, payload)
  SELECT g.event, 'millwright.delivery.accepted.v1', 'delivery', g.uid, 1, g.team, 'webhook', g.webhook, g.request, g.trace, g.at,
         jsonb_build_object('webhook_uid', g.webhook, 'factory_uid', g.factory, 'delivery_id', g.id, 'size_bytes', g.size)
    FROM given g JOIN inserted i ON i.uid = g.uid
)
SELECT g.n,
       CASE WHEN i.uid IS NOT NULL THEN 'inserted' WHEN g.nth <= c.accepted_count THEN 'not_inserted' ELSE 'limited' END AS result
  FROM given g JOIN counted c ON c.receiver_uid = g.webhook LEFT JOIN inserted i ON i.uid = g.uid`;

const INSERT_ONE_PER_WEBHOOK = insertSql(ONE_PER_WEBHOOK);
const INSERT_SEVERAL_PER_WEBHOOK = insertSql(SEVERAL_PER_WEBHOOK);

import { Batcher, isConflict, isTransient, type Database } from "@millwright/database";
import { EVENTS_APPENDED } from "@millwright/events";
import { DELIVERIES_PER_WINDOW, FAILURES_PER_ADDRESS, WINDOW_MS } from "../domain/limits.ts";
import { DELIVERIES, RECENT } from "./rate-windows.ts";

/** A delivery whose credential was right, as far as its webhook was known. Names are those of the statement's record. */
export type Letter = {
  readonly webhook: string;
  readonly team: string;
  readonly factory: string;
  /** The webhook's version, and the sealed text of the secret, by which the sender was let in. */
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

/** `changed`: the webhook is not what its sender was let in by, or refuses its address; nothing was counted or stored. */
export type Filed = "stored" | "logged" | "limited" | "changed";

/** While one statement waits for the disk, the next works, as large as it. A statement costs four times what one more delivery in it does. */
const TOGETHER = { concurrency: 2, isPerTurn: true };

/**
 * Files deliveries: counts each against its webhook's budget, claims its identity, stores it, and announces it. One statement for all
 * that come while others are being filed; of copies that come at once, in one statement or several, exactly one is stored. What was let in
 * and not stored is a duplicate, or was rejected: it is logged by a statement of its own, so that the many do not carry the few.
 */
export function letterFile(database: Database): (letter: Letter) => Promise<Filed> {
  const letters = new Batcher(
    (all: readonly Letter[]) => fileTogether(database, all),
    (error) => !isTransient(error) || isConflict(error),
    TOGETHER,
  );
  return async (letter) => {
    const filed = await letters.add(letter);
    if (filed === "logged") await log(database, letter);
    return filed;
  };
}

async function fileTogether(database: Database, all: readonly Letter[]): Promise<Filed[]> {
  let from = 1;
  const given = all.map(({ payload, ...letter }, n) => {
    const record = { n, from: payload ? from : null, ...letter };
    from += payload?.length ?? 0;
    return record;
  });
  const payloads = all.flatMap(({ payload }) => payload ?? []);
  given.sort((a, b) => (a.webhook < b.webhook ? -1 : 1));
  const isEachAlone = given.every(({ webhook }, n) => webhook !== given[n + 1]?.webhook);
  const { rows } = await database.sql.query<{ n: number; filed: Filed }>(isEachAlone ? FILE_EACH : FILE_ALL, [
    JSON.stringify(given),
    payloads.length === 1 ? payloads[0] : Buffer.concat(payloads),
  ]);
  const filed = Array<Filed>(all.length).fill("changed");
  for (const row of rows) filed[row.n] = row.filed;
  if (filed.includes("stored")) database.sql.announce?.(EVENTS_APPENDED);
  return filed;
}

async function log(
  database: Database,
  { uid, webhook, team, factory, outcome, kind, id, size, at }: Letter,
): Promise<void> {
  await database.sql.query(
    `INSERT INTO deliveries (uid, webhook_uid, team_uid, factory_uid, outcome, identity_kind, delivery_id, size_bytes, received_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [uid, webhook, team, factory, outcome === "accepted" ? "duplicate" : outcome, kind, id, size, at],
  );
}

/** Of one webhook in a statement: all are counted with the newest's time, the first `let_in` of them are let in. */
const SEVERAL = {
  nth: "row_number() OVER (PARTITION BY g.webhook ORDER BY g.n)",
  counted: `array_fill(max(at), ARRAY[least(count(*), ${DELIVERIES_PER_WINDOW})::integer]), least(count(*), ${DELIVERIES_PER_WINDOW}) FROM given GROUP BY webhook ORDER BY webhook`,
};
/** The same where no webhook has two, at three quarters of the cost. */
const EACH = { nth: "1", counted: "ARRAY[at], 1 FROM given" };

/** How many hits of a webhook's window are as old as that, or older. They are sorted. */
const hitsUntil = (at: string): string => `width_bucket(${at}, w.hits)`;
const GONE = hitsUntil(`excluded.hits[1] - interval '${WINDOW_MS} milliseconds'`);
const BEFORE = hitsUntil("excluded.hits[1]");
const ROOM = `least(excluded.let_in, greatest(0, ${DELIVERIES_PER_WINDOW} - cardinality(w.hits) + ${GONE}))`;

// $1 the letters without their payloads, in the order of their webhooks; $2 the payloads, one after the other.
// JSON, because PostgreSQL plans arrays anew at each use; subqueries, because it would rather read small tables whole than look things up in them. Budgets are taken in the
// order of webhooks, so that replicas never wait for each other in circles; whoever holds a webhook's has its identities for itself.
const file = ({ nth, counted }: typeof EACH): string => `
WITH given AS MATERIALIZED (
  SELECT g.*, ${nth} AS nth
    FROM json_to_recordset($1::json) AS g (n integer, "from" integer, webhook uuid, team uuid, factory uuid, version integer, sealed text, failures text, at timestamptz, uid uuid,
                                           outcome text, kind text, id text, size bigint, event uuid, request text, trace text)
   WHERE (SELECT w.enabled AND w.deleted_at IS NULL AND w.version = g.version AND g.sealed IS NOT DISTINCT FROM
                 CASE WHEN w.secret_name IS NULL THEN w.secret_sealed ELSE (SELECT s.sealed FROM team_secrets s WHERE s.team_uid = w.team_uid AND s.name = w.secret_name) END
            FROM webhooks w WHERE w.uid = g.webhook)
     AND coalesce((SELECT (SELECT count(*) FROM (${RECENT("g.at", "f.hits")}) h) < ${FAILURES_PER_ADDRESS} FROM rate_windows f WHERE f.webhook_uid = g.webhook AND f.bucket = g.failures), true)
), counted AS (
  INSERT INTO rate_windows AS w (webhook_uid, bucket, hits, let_in)
  SELECT webhook, '${DELIVERIES}', ${counted}
  ON CONFLICT (webhook_uid, bucket) DO UPDATE
     SET hits = w.hits[${GONE} + 1:${BEFORE}] || array_fill(excluded.hits[1], ARRAY[${ROOM}]) || w.hits[${BEFORE} + 1:], let_in = ${ROOM}
  RETURNING webhook_uid, let_in
), stored AS (
  INSERT INTO deliveries (uid, webhook_uid, team_uid, factory_uid, outcome, identity_kind, delivery_id, size_bytes, received_at, payload)
  SELECT g.uid, g.webhook, g.team, g.factory, g.outcome, g.kind, g.id, g.size, g.at, substring($2::bytea FROM g."from" FOR g.size::integer)
    FROM given g JOIN counted c ON c.webhook_uid = g.webhook AND g.nth <= c.let_in WHERE g.outcome = 'accepted'
  ON CONFLICT (webhook_uid, identity_kind, delivery_id) WHERE outcome = 'accepted' DO NOTHING
  RETURNING uid
), told AS (
  INSERT INTO stream.event_pending (uid, type, entity, entity_uid, entity_version, team_uid, actor_type, actor_uid, request_id, traceparent, occurred_at, payload)
  SELECT g.event, 'millwright.delivery.accepted.v1', 'delivery', g.uid, 1, g.team, 'webhook', g.webhook, g.request, g.trace, g.at,
         jsonb_build_object('webhook_uid', g.webhook, 'factory_uid', g.factory, 'delivery_id', g.id, 'size_bytes', g.size)
    FROM given g JOIN stored s ON s.uid = g.uid
)
SELECT g.n, CASE WHEN s.uid IS NOT NULL THEN 'stored' WHEN g.nth <= c.let_in THEN 'logged' ELSE 'limited' END AS filed
  FROM given g JOIN counted c ON c.webhook_uid = g.webhook LEFT JOIN stored s ON s.uid = g.uid`;

const FILE_EACH = file(EACH);
const FILE_ALL = file(SEVERAL);

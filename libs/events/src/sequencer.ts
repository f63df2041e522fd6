import type { Database } from "@millwright/database";

/** Rows moved in one transaction. */
const BATCH = 500;
const PARTITION_SIZE = 1_000_000;
/** Arbitrary constant: advisory locks are per database, and no other code in a service uses this one. */
const SEQUENCER_LOCK = 6_172_839;

/**
 * Moves committed events from `event_pending` to the log with gapless positions, and returns the log's head with the
 * types that were moved. One sequencer works at a time per database; if another is running, this returns without an
 * error.
 *
 * The lock is taken in a statement before the move, so the move sees everything its predecessor committed. Events it
 * cannot see have no position yet and will get a higher one. Rows are selected by a range of their keys, so that
 * PostgreSQL uses the index whatever its estimate of the table size; all visible rows of the range are in the batch.
 */
export async function sequence(database: Database, now: Date): Promise<{ head: number; types: Set<string> }> {
  const types = new Set<string>();
  for (;;) {
    const { rows } = await database.sql.query<Meta & { hasPending: boolean }>(
      `SELECT head, partitioned_to AS "partitionedTo", (SELECT seq FROM stream.event_pending ORDER BY seq LIMIT 1) IS NOT NULL AS "hasPending" FROM stream.event_meta`,
    );
    const meta = rows[0];
    if (!meta) throw new Error("stream.event_meta has no row: the migrations were not applied.");
    if (!meta.hasPending) return { head: meta.head, types };
    const moved = await moveBatch(database, now, meta);
    if (moved === "locked") return { head: meta.head, types };
    for (const { type } of moved) types.add(type);
    if (moved.length < BATCH) return { head: Math.max(meta.head, ...moved.map(({ position }) => position)), types };
  }
}

type Meta = { readonly head: number; readonly partitionedTo: number };
type Moved = { readonly type: string; readonly position: number };

/**
 * `seen` may be slightly old: the head never falls, and a batch without a partition fails as a whole and is retried.
 */
async function moveBatch(database: Database, now: Date, { head, partitionedTo }: Meta): Promise<Moved[] | "locked"> {
  return database.transaction(async (tx) => {
    const lock = await tx.query<{ ok: boolean }>("SELECT pg_try_advisory_xact_lock($1) AS ok", [SEQUENCER_LOCK]);
    if (!lock.rows[0]?.ok) return "locked";
    if (head + BATCH > partitionedTo) {
      const [from, to] = [partitionedTo + 1, partitionedTo + PARTITION_SIZE];
      const name = `stream.event_log_${from}`;
      // Created separately and attached, so that readers are not blocked.
      await tx.query(`CREATE TABLE ${name} (LIKE stream.event_log INCLUDING ALL)`);
      await tx.query(`ALTER TABLE stream.event_log ATTACH PARTITION ${name} FOR VALUES FROM (${from}) TO (${to + 1})`);
      await tx.query("UPDATE stream.event_meta SET partitioned_to = $1", [to]);
    }
    const { rows } = await tx.query<Moved>(
      `WITH batch AS MATERIALIZED (
         SELECT min(seq) AS first, max(seq) AS last FROM (SELECT seq FROM stream.event_pending ORDER BY seq LIMIT ${BATCH}) oldest
       ), moved AS (
         DELETE FROM stream.event_pending WHERE seq BETWEEN (SELECT first FROM batch) AND (SELECT last FROM batch) RETURNING *
       ), meta AS (
         UPDATE stream.event_meta SET head = head + (SELECT count(*) FROM moved) RETURNING head - (SELECT count(*) FROM moved) AS before
       )
       INSERT INTO stream.event_log (position, uid, type, entity, entity_uid, entity_version, team_uid, actor_type, actor_uid,
                                     request_id, cause, traceparent, occurred_at, logged_at, payload)
       SELECT meta.before + row_number() OVER (ORDER BY seq), uid, type, entity, entity_uid, entity_version, team_uid, actor_type,
              actor_uid, request_id, cause, traceparent, occurred_at, $1::timestamptz, payload FROM moved, meta
       RETURNING type, position`,
      [now],
    );
    return rows;
  });
}

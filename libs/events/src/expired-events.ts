import type { Database } from "@millwright/database";

/** Rows deleted in one transaction. */
const BATCH = 5_000;
/** Dropping a partition needs the log for a moment; without it in time, the next run tries again. */
const LOCK_TIMEOUT_MS = 2_000;
/** Arbitrary constant: advisory locks are per database, and no other code in a service uses this one. */
const PRUNER_LOCK = 6_172_840;

/** Events that are published to NATS later must be retained until then. */
const RELAYED = `coalesce((SELECT position FROM stream.feed_cursors WHERE reader = 'nats-relay'), 9223372036854775807)`;

type Partition = { readonly name: string; readonly isExpired: boolean };

/**
 * Deletes events that were logged before that time: the oldest partition as a whole if all its events were, otherwise a
 * batch of its oldest events. Returns whether there may be more. One replica works at a time; the others return false.
 */
export async function deleteExpiredEvents(database: Database, before: Date): Promise<boolean> {
  return database.transaction(async (tx) => {
    const lock = await tx.query<{ ok: boolean }>("SELECT pg_try_advisory_xact_lock($1) AS ok", [PRUNER_LOCK]);
    if (!lock.rows[0]?.ok) return false;
    const { rows: partitions } = await tx.query<{ name: string }>(
      `SELECT inhrelid::regclass::text AS name
         FROM pg_inherits
        WHERE inhparent = 'stream.event_log'::regclass
        ORDER BY substring(inhrelid::regclass::text FROM '[0-9]+$')::bigint
        LIMIT 2`,
    );
    const [oldest, next] = partitions;
    if (!oldest) return false;
    if (next) {
      const { rows } = await tx.query<Partition>(
        `SELECT coalesce((SELECT logged_at < $1 AND position <= ${RELAYED}
                            FROM ${oldest.name} ORDER BY position DESC LIMIT 1),
                         (SELECT head >= (SELECT substring($2 FROM '[0-9]+$')::bigint) FROM stream.event_meta)) AS "isExpired"`,
        [before, next.name],
      );
      if (rows[0]?.isExpired) {
        await tx.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
        await tx.query(`DROP TABLE ${oldest.name}`);
        return true;
      }
    }
    const { rowCount } = await tx.query(
      `DELETE FROM ${oldest.name}
        WHERE position IN (SELECT position FROM ${oldest.name} ORDER BY position LIMIT ${BATCH})
          AND logged_at < $1 AND position <= ${RELAYED}`,
      [before],
    );
    return rowCount === BATCH;
  });
}

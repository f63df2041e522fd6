import type { Sql } from "@millwright/database";
import { FAILURES_PER_ADDRESS, retryAfterSeconds, WINDOW_MS } from "../domain/limits.ts";

/** The budgets of a webhook or connection: one row each in `rate_windows`. */
export const DELIVERIES = "deliveries";
export const FAILURES = "failures";
export const failuresOf = (address: string): string => `failures ${address}`;

/** Returns SQL of the hits within the window. A hit exactly one window ago is outside. */
export const RECENT = (at: string, hits: string): string =>
  `SELECT h FROM unnest(${hits}) h WHERE h > ${at} - interval '${WINDOW_MS} milliseconds'`;

/** Returns SQL that adds a hit to a budget of $1 and returns a row, or returns none if the budget is exceeded. */
export const hit = (bucket: string, at: string, most: number, from = ""): string => `
  INSERT INTO rate_windows AS w (receiver_uid, bucket, hits) SELECT $1::uuid, ${bucket}, ARRAY[${at}] ${from}
  ON CONFLICT (receiver_uid, bucket) DO UPDATE
     SET hits = (SELECT coalesce(array_agg(h ORDER BY h), '{}') FROM (${RECENT(at, "w.hits")}) h) || ${at}
   WHERE (SELECT count(*) FROM (${RECENT(at, "w.hits")}) h) < ${most}
  RETURNING 1`;

/** Returns the whole seconds for which an address with these failures is refused; undefined if it is not. */
export function refusedFor(hits: readonly Date[] | null, now: Date): number | undefined {
  const recent = (hits ?? [])
    .filter((at) => at.getTime() > now.getTime() - WINDOW_MS)
    .toSorted((a, b) => a.getTime() - b.getTime());
  return recent.length >= FAILURES_PER_ADDRESS ? retryAfterSeconds(recent.at(-FAILURES_PER_ADDRESS)!, now) : undefined;
}

/** Returns the whole seconds until an exceeded budget has capacity. */
export async function secondsUntilCapacity(sql: Sql, uid: string, bucket: string, now: Date): Promise<number> {
  const { rows } = await sql.query<{ at: Date | null }>(
    `SELECT (SELECT min(h) FROM (${RECENT("$3::timestamptz", "hits")}) h) AS at
       FROM rate_windows WHERE receiver_uid = $1 AND bucket = $2`,
    [uid, bucket, now],
  );
  return retryAfterSeconds(rows[0]?.at ?? now, now);
}

/** Deletes budgets without hits in the window. */
export async function pruneRateWindows(sql: Sql, now: Date): Promise<void> {
  await sql.query(
    `DELETE FROM rate_windows WHERE (receiver_uid, bucket) IN (
       SELECT receiver_uid, bucket FROM rate_windows WHERE NOT EXISTS (${RECENT("$1::timestamptz", "hits")}) FOR UPDATE SKIP LOCKED)`,
    [now],
  );
}

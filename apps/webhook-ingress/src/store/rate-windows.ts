import type { Sql } from "@millwright/database";
import { FAILURES_PER_ADDRESS, retryAfterSeconds, WINDOW_MS } from "../domain/limits.ts";

/** The budgets of an address that is delivered to, a webhook's or a connection's: a row each in `rate_windows`. */
export const DELIVERIES = "deliveries";
export const FAILURES = "failures";
export const failuresOf = (address: string): string => `failures ${address}`;

/** Those hits of a window that count at a time. A hit of exactly a minute ago has left. */
export const RECENT = (at: string, hits: string): string =>
  `SELECT h FROM unnest(${hits}) h WHERE h > ${at} - interval '${WINDOW_MS} milliseconds'`;

/** One more hit in a budget of $1, if there is room: the SQL answers a row then, and none otherwise. It comes last, also when its time does not. */
export const hit = (bucket: string, at: string, most: number, from = ""): string => `
  INSERT INTO rate_windows AS w (webhook_uid, bucket, hits) SELECT $1::uuid, ${bucket}, ARRAY[${at}] ${from}
  ON CONFLICT (webhook_uid, bucket) DO UPDATE SET hits = (SELECT coalesce(array_agg(h ORDER BY h), '{}') FROM (${RECENT(at, "w.hits")}) h) || ${at}
   WHERE (SELECT count(*) FROM (${RECENT(at, "w.hits")}) h) < ${most}
  RETURNING 1`;

/** Whole seconds for which an address with these failures is refused unheard; undefined: it is heard. */
export function refusedFor(hits: readonly Date[] | null, now: Date): number | undefined {
  const recent = (hits ?? [])
    .filter((at) => at.getTime() > now.getTime() - WINDOW_MS)
    .toSorted((a, b) => a.getTime() - b.getTime());
  return recent.length >= FAILURES_PER_ADDRESS ? retryAfterSeconds(recent.at(-FAILURES_PER_ADDRESS)!, now) : undefined;
}

/** Whole seconds until there is room in a budget that is used up. */
export async function secondsUntilRoom(sql: Sql, uid: string, bucket: string, now: Date): Promise<number> {
  const { rows } = await sql.query<{ at: Date | null }>(
    `SELECT (SELECT min(h) FROM (${RECENT("$3::timestamptz", "hits")}) h) AS at FROM rate_windows WHERE webhook_uid = $1 AND bucket = $2`,
    [uid, bucket, now],
  );
  return retryAfterSeconds(rows[0]?.at ?? now, now);
}

/** Forgets budgets that nobody has used for a while. */
export async function pruneRateWindows(sql: Sql, now: Date): Promise<void> {
  await sql.query(
    `DELETE FROM rate_windows WHERE (webhook_uid, bucket) IN (
       SELECT webhook_uid, bucket FROM rate_windows WHERE NOT EXISTS (${RECENT("$1::timestamptz", "hits")}) FOR UPDATE SKIP LOCKED)`,
    [now],
  );
}

import type { Sql } from "@millwright/database";
import { METRICS_REQUESTS_PER_WINDOW, METRICS_WINDOW_MS } from "../domain/metrics-limit.ts";

/** The credential whose requests are counted, and the factory of the requests. */
export type MetricsRequester = { readonly credentialHash: string; readonly factoryUid: string };

/**
 * SQL for the requests of the last minute among `requests`. A request of exactly one minute ago is outside the window.
 */
const RECENT = `SELECT r FROM unnest(w.requests) r WHERE r > $3::timestamptz - interval '${METRICS_WINDOW_MS} milliseconds'`;

/**
 * Counts a request unless the limit is reached, in which case it returns the oldest request of the window. The row lock
 * serialises replicas that count concurrently.
 */
export async function countMetricsRequest(
  sql: Sql,
  { credentialHash, factoryUid }: MetricsRequester,
  now: Date,
): Promise<Date | undefined> {
  const key = [credentialHash, factoryUid, now];
  const { rowCount } = await sql.query(
    `INSERT INTO metrics_requests AS w (credential_hash, factory_uid, requests, expires_at)
     VALUES ($1, $2::uuid, ARRAY[$3::timestamptz], $4::timestamptz)
     ON CONFLICT (credential_hash, factory_uid) DO UPDATE
        SET requests = ARRAY(${RECENT} ORDER BY r) || $3::timestamptz,
            expires_at = greatest(w.expires_at, excluded.expires_at)
      WHERE (SELECT count(*) FROM (${RECENT}) recent) < ${METRICS_REQUESTS_PER_WINDOW}`,
    [...key, new Date(now.getTime() + METRICS_WINDOW_MS)],
  );
  if (rowCount === 1) return undefined;
  const { rows } = await sql.query<{ oldest: Date | null }>(
    `SELECT (SELECT min(r) FROM (${RECENT}) recent) AS oldest
       FROM metrics_requests w
      WHERE credential_hash = $1 AND factory_uid = $2::uuid`,
    key,
  );
  return rows[0]?.oldest ?? now;
}

/** Deletes counts whose window has passed. */
export async function pruneMetricsRequests(sql: Sql, now: Date): Promise<void> {
  await sql.query("DELETE FROM metrics_requests WHERE expires_at <= $1", [now]);
}

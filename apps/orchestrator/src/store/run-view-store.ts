import type { Sql } from "@millwright/database";
import { TERMINAL_STATES } from "../domain/run.ts";

/** Whether nothing more can come: the run has ended and so has every execution, with its tail of events. */
export async function isSettled(sql: Sql, runUid: string): Promise<boolean> {
  const { rows } = await sql.query<{ settled: boolean }>(
    `SELECT r.state = ANY($2) AND NOT EXISTS (SELECT 1 FROM executions x WHERE x.run_uid = r.uid AND x.state <> 'ENDED') AS settled
       FROM runs r WHERE r.uid = $1`,
    [runUid, TERMINAL_STATES],
  );
  return rows[0]?.settled ?? true;
}

/** When an environment was last used, and whether that run failed while it was set up; environments never used are left out. */
export async function environmentUse(sql: Sql, environmentUids: readonly string[]): Promise<Map<string, { at: Date; hasFailedSetup: boolean }>> {
  if (environmentUids.length === 0) return new Map();
  const { rows } = await sql.query<{ environment_uid: string; created_at: Date; failed: boolean }>(
    `SELECT e.uid AS environment_uid, newest.created_at, coalesce(newest.error_code = 'environment_setup_failed', false) AS failed
       FROM unnest($1::text[]) AS e (uid)
       CROSS JOIN LATERAL (SELECT created_at, error_code FROM runs WHERE environment_uid = e.uid ORDER BY created_at DESC, uid DESC LIMIT 1) newest`,
    [environmentUids],
  );
  return new Map(rows.map((row) => [row.environment_uid, { at: row.created_at, hasFailedSetup: row.failed }]));
}

export type ConnectedWorker = {
  readonly workerHost: string;
  readonly connectionCount: number;
  readonly connectedAt: Date;
  readonly lastSeenAt: Date;
  readonly sandbox: string;
  readonly sandboxFeatures: readonly string[];
};

/** A connection that was not heard of for this long is not shown (spec/decisions). */
export const WORKER_SHOWN_SECONDS = 45;

/** Connected workers that serve one of the teams only, by worker host. Those of the platform are nobody's own. */
export async function connectedWorkers(sql: Sql, teamUids: readonly string[]): Promise<ConnectedWorker[]> {
  const { rows } = await sql.query<{ worker_host: string; connections: number; connected_at: Date; last_seen_at: Date; sandbox: string; sandbox_features: string[] }>(
    `SELECT worker_host, count(*) AS connections, min(connected_at) AS connected_at, max(last_seen_at) AS last_seen_at,
            (array_agg(sandbox ORDER BY last_seen_at DESC))[1] AS sandbox,
            (array_agg(to_jsonb(sandbox_features) ORDER BY last_seen_at DESC))[1] AS sandbox_features
       FROM worker_sessions
      WHERE team_uid = ANY($1::uuid[]) AND last_seen_at > clock_timestamp() - $2 * interval '1 second'
      GROUP BY worker_host ORDER BY worker_host COLLATE "C"`,
    [teamUids, WORKER_SHOWN_SECONDS],
  );
  return rows.map((row) => ({
    workerHost: row.worker_host,
    connectionCount: row.connections,
    connectedAt: row.connected_at,
    lastSeenAt: row.last_seen_at,
    sandbox: row.sandbox,
    sandboxFeatures: row.sandbox_features,
  }));
}

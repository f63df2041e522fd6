import { WORKER_SHOWN_SECONDS } from "../../catalog/domain/queue-settings.ts";
import { ownersWith, type Caller } from "@millwright/caller";
import type { Sql } from "@millwright/database";
import { TERMINAL_STATES, type RunState } from "../domain/run.ts";
import { visibleRuns, visibleTo } from "./run-store.ts";

/**
 * Whether no more events can follow: the run is terminal, and all executions have ended, including those that were
 * stopping.
 */
export async function isSettled(sql: Sql, runUid: string): Promise<boolean> {
  const { rows } = await sql.query<{ settled: boolean }>(
    `SELECT r.state = ANY($2) AND NOT EXISTS (SELECT 1 FROM executions x WHERE x.run_uid = r.uid AND x.state <> 'ENDED') AS settled
       FROM runs r WHERE r.uid = $1`,
    [runUid, TERMINAL_STATES],
  );
  return rows[0]?.settled ?? true;
}

type EnvironmentUse = {
  runUid: string;
  title: string;
  state: RunState;
  createdAt: Date;
  updatedAt: Date;
  startedAt?: Date;
  hasFailedSetup: boolean;
};

/**
 * Returns the newest run in each environment that the caller may see, and whether its setup failed. Environments
 * without a visible run are left out.
 */
export async function environmentUse(
  sql: Sql,
  caller: Caller,
  environmentUids: readonly string[],
): Promise<Map<string, EnvironmentUse>> {
  if (environmentUids.length === 0) return new Map();
  const owners = ownersWith(caller, "run.view");
  const { rows } = await sql.query<
    Omit<EnvironmentUse, "startedAt"> & { environmentUid: string; startedAt: Date | null }
  >(
    `SELECT e.uid AS "environmentUid", n.uid AS "runUid", n.title, n.state, n.created_at AS "createdAt", n.updated_at AS "updatedAt", n.started_at AS "startedAt",
            coalesce(n.error_code = 'environment_setup_failed', false) AS "hasFailedSetup"
       FROM unnest($1::text[]) AS e (uid)
       CROSS JOIN LATERAL (
         SELECT newest.* FROM unnest($2::text[], $3::uuid[]) AS o (type, uid)
          CROSS JOIN LATERAL (
            SELECT * FROM runs r WHERE r.owner_type = o.type AND r.owner_uid = o.uid AND r.environment_uid = e.uid AND ${visibleRuns(4)} ORDER BY r.created_at DESC, r.uid DESC LIMIT 1) newest
          ORDER BY newest.created_at DESC, newest.uid DESC LIMIT 1) n`,
    [environmentUids, owners.map(({ type }) => type), owners.map(({ uid }) => uid), ...visibleTo(caller)],
  );
  return new Map(
    rows.map(({ environmentUid, startedAt, ...use }) => [
      environmentUid,
      { ...use, startedAt: startedAt ?? undefined },
    ]),
  );
}

export type ConnectedWorker = {
  readonly workerHost: string;
  readonly connectionCount: number;
  readonly connectedAt: Date;
  readonly lastSeenAt: Date;
  readonly sandbox: string;
  readonly sandboxFeatures: readonly string[];
};

/**
 * Returns the connected workers that serve only one of these teams, by worker host. Workers of the platform belong to
 * no team.
 */
export async function connectedWorkers(sql: Sql, teamUids: readonly string[]): Promise<ConnectedWorker[]> {
  const { rows } = await sql.query<{
    worker_host: string;
    connections: number;
    connected_at: Date;
    last_seen_at: Date;
    sandbox: string;
    sandbox_features: string[];
  }>(
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

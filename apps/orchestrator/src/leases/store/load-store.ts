import type { Sql } from "@millwright/database";
import type { RunState } from "../../runs/domain/run.ts";

/** The current load of the platform. Its size depends on what is active, not on history. */
export type Load = {
  readonly runs: readonly { readonly state: RunState; readonly count: number }[];
  readonly leases: readonly { readonly isAccepted: boolean; readonly phase: string; readonly count: number }[];
  readonly workers: readonly {
    readonly state: string;
    readonly count: number;
    readonly slots: number;
    readonly used: number;
  }[];
  /** Number of runs that wait for children. */
  readonly waits: number;
};

/** Returns the current load. A worker counts if it was seen within `presentMs`. */
export async function readLoad(sql: Sql, presentMs: number): Promise<Load> {
  const [runs, leases, workers, waits] = await Promise.all([
    sql.query<Load["runs"][number]>(
      "SELECT state, count(*) AS count FROM runs WHERE state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS') GROUP BY state",
    ),
    sql.query<Load["leases"][number]>(
      'SELECT accepted AS "isAccepted", phase, count(*) AS count FROM leases GROUP BY accepted, phase',
    ),
    sql.query<Load["workers"][number]>(
      `SELECT ws.state, count(*) AS count, sum(ws.slots)::bigint AS slots, sum((SELECT count(*) FROM leases l WHERE l.session_uid = ws.uid))::bigint AS used
         FROM worker_sessions ws WHERE ws.last_seen_at > clock_timestamp() - $1 * interval '1 ms' GROUP BY ws.state`,
      [presentMs],
    ),
    sql.query<{ count: number }>("SELECT count(*) AS count FROM waits"),
  ]);
  return { runs: runs.rows, leases: leases.rows, workers: workers.rows, waits: waits.rows[0]?.count ?? 0 };
}

import type { Sql } from "@millwright/database";

export type StaleRun = { readonly runUid: string; readonly marks: bigint; readonly tries: number };
export type RunChange = { readonly runUid: string; readonly changedAt: Date };

/** Marks runs whose facts must be read again now. A run that waits for a later refresh is read now. */
export async function markStale(tx: Sql, changes: readonly RunChange[]): Promise<void> {
  if (changes.length === 0) return;
  await tx.query(
    `INSERT INTO stale_runs AS s (run_uid, changed_at, refresh_at)
     SELECT run_uid, min(changed_at), min(changed_at)
       FROM unnest($1::uuid[], $2::timestamptz[]) AS change (run_uid, changed_at)
      GROUP BY run_uid
      ORDER BY run_uid
     ON CONFLICT (run_uid) DO UPDATE SET
       marks = s.marks + 1,
       tries = 0,
       changed_at = least(s.changed_at, excluded.changed_at),
       refresh_at = least(s.refresh_at, excluded.refresh_at)`,
    [changes.map(({ runUid }) => runUid), changes.map(({ changedAt }) => changedAt)],
  );
}

/** Claims runs whose refresh is due, longest due first, for `leaseSeconds`: until then no other replica reads them. */
export async function claimStale(sql: Sql, now: Date, limit: number, leaseSeconds: number): Promise<StaleRun[]> {
  const { rows } = await sql.query<{ run_uid: string; marks: string; tries: number }>(
    `UPDATE stale_runs s
        SET refresh_at = $1::timestamptz + make_interval(secs => $3)
       FROM (SELECT run_uid FROM stale_runs WHERE refresh_at <= $1 ORDER BY refresh_at LIMIT $2 FOR UPDATE SKIP LOCKED) due
      WHERE s.run_uid = due.run_uid
     RETURNING s.run_uid, s.marks::text, s.tries`,
    [now, limit, leaseSeconds],
  );
  return rows.map(({ run_uid, marks, tries }) => ({ runUid: run_uid, marks: BigInt(marks), tries }));
}

/** Ends the refresh of runs in the transaction that stored their facts. Runs that were marked again since they were claimed stay, due now. */
export async function endRefresh(tx: Sql, runs: readonly StaleRun[], now: Date): Promise<void> {
  const params = [runs.map(({ runUid }) => runUid), runs.map(({ marks }) => String(marks))];
  await tx.query(
    `DELETE FROM stale_runs s USING unnest($1::uuid[], $2::bigint[]) AS claimed (run_uid, marks) WHERE s.run_uid = claimed.run_uid AND s.marks = claimed.marks`,
    params,
  );
  await tx.query(
    `UPDATE stale_runs s SET refresh_at = $3 FROM unnest($1::uuid[], $2::bigint[]) AS claimed (run_uid, marks) WHERE s.run_uid = claimed.run_uid AND s.marks <> claimed.marks`,
    [...params, now],
  );
}

/** Plans to read runs again later: what changes without an event, such as usage of a run in progress. */
export async function refreshLater(tx: Sql, runUids: readonly string[], at: Date): Promise<void> {
  if (runUids.length === 0) return;
  await tx.query(
    `INSERT INTO stale_runs AS s (run_uid, changed_at, refresh_at)
     SELECT run_uid, $2, $2 FROM unnest($1::uuid[]) AS run_uid ORDER BY run_uid
     ON CONFLICT (run_uid) DO NOTHING`,
    [runUids, at],
  );
}

/** Returns the time of the oldest change that no answer shows; undefined: all are shown. */
export async function oldestUnshown(sql: Sql, now: Date): Promise<Date | undefined> {
  const { rows } = await sql.query<{ at: Date | null }>("SELECT min(changed_at) AS at FROM stale_runs WHERE changed_at <= $1", [now]);
  return rows[0]?.at ?? undefined;
}

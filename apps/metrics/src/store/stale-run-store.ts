import type { Sql } from "@millwright/database";

/** A claimed run. `marks` and `leaseEndsAt` name the claim: it is lost as soon as either has changed. */
export type StaleRun = { readonly runUid: string; readonly marks: string; readonly leaseEndsAt: Date };
export type RunChange = { readonly runUid: string; readonly changedAt: Date };

/** Announced by transactions that have marked runs (`Database.onCommit`). */
export const MARKED = "stale_runs";

/**
 * Marks runs whose facts must be read again, now. A claim of such a run is lost: what was read for it may be older than
 * the change.
 */
export async function markStale(tx: Sql, changes: readonly RunChange[], now: Date): Promise<void> {
  if (changes.length === 0) return;
  await tx.query(
    `INSERT INTO stale_runs AS s (run_uid, changed_at, refresh_at)
     SELECT run_uid, min(changed_at), $3
       FROM unnest($1::uuid[], $2::timestamptz[]) AS change (run_uid, changed_at)
      GROUP BY run_uid
      ORDER BY run_uid
     ON CONFLICT (run_uid) DO UPDATE SET
       marks = s.marks + 1,
       failures = 0,
       changed_at = least(s.changed_at, excluded.changed_at),
       refresh_at = least(s.refresh_at, excluded.refresh_at)`,
    [changes.map(({ runUid }) => runUid), changes.map(({ changedAt }) => changedAt), now],
  );
  tx.announce?.(MARKED);
}

/** Claims runs whose refresh is due, longest due first, for `leaseMs`: until then no other replica reads them. */
export async function claimStale(sql: Sql, now: Date, limit: number, leaseMs: number): Promise<StaleRun[]> {
  const leaseEndsAt = new Date(now.getTime() + leaseMs);
  const { rows } = await sql.query<{ run_uid: string; marks: string }>(
    `UPDATE stale_runs s
        SET refresh_at = $2
       FROM (SELECT run_uid FROM stale_runs WHERE refresh_at <= $1 ORDER BY refresh_at LIMIT $3 FOR UPDATE SKIP LOCKED) due
      WHERE s.run_uid = due.run_uid
     RETURNING s.run_uid, s.marks::text`,
    [now, leaseEndsAt, limit],
  );
  return rows.map(({ run_uid, marks }) => ({ runUid: run_uid, marks, leaseEndsAt }));
}

/** Locks the runs whose claims are not lost, until the transaction ends. Returns their uids. */
export async function lockClaimed(tx: Sql, claims: readonly StaleRun[]): Promise<Set<string>> {
  const { rows } = await tx.query<{ run_uid: string }>(
    `SELECT s.run_uid
       FROM stale_runs s
       JOIN unnest($1::uuid[], $2::bigint[], $3::timestamptz[]) AS claim (run_uid, marks, lease_ends_at)
         ON claim.run_uid = s.run_uid AND claim.marks = s.marks AND claim.lease_ends_at = s.refresh_at
      ORDER BY s.run_uid
        FOR UPDATE OF s`,
    [
      claims.map(({ runUid }) => runUid),
      claims.map(({ marks }) => marks),
      claims.map(({ leaseEndsAt }) => leaseEndsAt),
    ],
  );
  return new Set(rows.map(({ run_uid }) => run_uid));
}

/** Ends the refresh of runs that the transaction has locked: each is read again at its time, or is no longer stale. */
export async function endRefresh(
  tx: Sql,
  runs: readonly { readonly runUid: string; readonly nextReadAt: Date | undefined }[],
): Promise<void> {
  const later = runs.filter(({ nextReadAt }) => nextReadAt !== undefined);
  const ended = runs.filter(({ nextReadAt }) => nextReadAt === undefined);
  if (ended.length > 0)
    await tx.query("DELETE FROM stale_runs WHERE run_uid = ANY($1::uuid[])", [ended.map(({ runUid }) => runUid)]);
  if (later.length > 0) {
    await tx.query(
      `UPDATE stale_runs s
          SET changed_at = plan.at, refresh_at = plan.at, failures = 0
         FROM unnest($1::uuid[], $2::timestamptz[]) AS plan (run_uid, at)
        WHERE s.run_uid = plan.run_uid`,
      [later.map(({ runUid }) => runUid), later.map(({ nextReadAt }) => nextReadAt)],
    );
  }
}

/**
 * Plans the next try of runs whose refresh has failed: after `pauseMs`, doubled by every failure up to `pauseMsMax`.
 * Lost claims are passed over.
 */
export async function retryLater(
  tx: Sql,
  claims: readonly StaleRun[],
  now: Date,
  pauseMs: number,
  pauseMsMax: number,
): Promise<void> {
  const claimed = await lockClaimed(tx, claims);
  await tx.query(
    `UPDATE stale_runs
        SET failures = failures + 1,
            refresh_at = $2::timestamptz + make_interval(secs => least($3::float8 * 2 ^ least(failures, 20), $4::float8) / 1000)
      WHERE run_uid = ANY($1::uuid[])`,
    [[...claimed], now, pauseMs, pauseMsMax],
  );
}

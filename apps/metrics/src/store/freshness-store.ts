import type { Sql } from "@millwright/database";

/** A feed that this service consumes. */
export type FeedOfReader = { readonly name: string; readonly source: string };

/** Returns when events of a feed were applied last; undefined: never. */
export async function readAppliedAt(sql: Sql, { name, source }: FeedOfReader): Promise<Date | undefined> {
  const { rows } = await sql.query<{ updated_at: Date }>(
    "SELECT updated_at FROM stream.feed_cursors WHERE reader = $1 AND source = $2 AND position > 0",
    [name, source],
  );
  return rows[0]?.updated_at;
}

/**
 * Returns the time of the oldest change that responses do not include yet: of a run whose facts are to be read, or of a
 * delivery that is to be recorded by work of a kind. Undefined: there is none. A dead-lettered delivery does not count,
 * because it would report the data of all teams as stale.
 */
export async function readOldestPendingChange(sql: Sql, recordingKind: string, now: Date): Promise<Date | undefined> {
  const { rows } = await sql.query<{ pending_since: Date | null }>(
    `SELECT least(
         (SELECT min(changed_at) FROM stale_runs WHERE changed_at <= $1),
         (SELECT min(coalesce((payload ->> 'receivedAt')::timestamptz, created_at))
            FROM stream.work_items
           WHERE state IN ('waiting', 'running')
             AND kind = $2)) AS pending_since`,
    [now, recordingKind],
  );
  return rows[0]?.pending_since ?? undefined;
}

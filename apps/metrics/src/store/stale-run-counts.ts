import type { Sql } from "@millwright/database";

export type StaleRunCounts = {
  readonly waiting: number;
  /** Those of which a read has failed. */
  readonly failing: number;
  /** Age of the oldest change that no response contains; 0 if there is none. */
  readonly oldestSeconds: number;
};

export async function countStaleRuns(sql: Sql, now: Date): Promise<StaleRunCounts> {
  const { rows } = await sql.query<StaleRunCounts>(
    `SELECT count(*) FILTER (WHERE failures = 0)::int AS waiting,
            count(*) FILTER (WHERE failures > 0)::int AS failing,
            coalesce(extract(epoch FROM $1::timestamptz - min(changed_at)), 0)::float8 AS "oldestSeconds"
       FROM stale_runs`,
    [now.toISOString()],
  );
  return rows[0]!;
}

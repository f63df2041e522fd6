import type { Sql } from "@millwright/database";

export type ScoringCounts = {
  readonly pending: number;
  readonly judging: number;
  /** Age of the oldest unfinished attempt; 0 if there is none. */
  readonly oldestSeconds: number;
  readonly benchmarkRuns: Readonly<Record<"pending" | "running" | "scoring", number>>;
};

/** Counts unfinished attempts and benchmark runs. Both are read through indexes of unfinished rows. */
export async function countScoring(sql: Sql, now: Date): Promise<ScoringCounts> {
  const { rows } = await sql.query<ScoringCounts>(
    `SELECT count(*) FILTER (WHERE state = 'pending')::int AS pending,
            count(*) FILTER (WHERE state = 'judging')::int AS judging,
            coalesce(extract(epoch FROM $1::timestamptz - min(attempted_at)), 0)::float8 AS "oldestSeconds",
            (SELECT json_build_object(
                      'pending', count(*) FILTER (WHERE state = 'pending'),
                      'running', count(*) FILTER (WHERE state = 'running'),
                      'scoring', count(*) FILTER (WHERE state = 'scoring'))
               FROM benchmark_runs
              WHERE state IN ('pending', 'running', 'scoring')) AS "benchmarkRuns"
       FROM attempts
      WHERE state IN ('pending', 'judging')`,
    [now.toISOString()],
  );
  return rows[0]!;
}

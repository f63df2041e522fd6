import type { Sql } from "@millwright/database";
import { boundsOf, columnsOf, splitDays, type PeriodWindow } from "../domain/period-window.ts";
import { NO_MERGES, type MergeCounts, type MergedPullRequests } from "../domain/merge-latency.ts";

/** Times are in one order, packed as `toTimes` reads them. */
type MergesRow = Record<(typeof MILESTONES)[number], Buffer> & {
  period: number;
  merged: number;
  unopened: number;
  observed: number;
  without_human_code_change: number;
  additions: number;
  deletions: number;
  sized: number;
};

/** Pull requests by when they merged: the factory's own, and those of anyone in its repositories. */
export const mergeStore = (searches: Sql) => ({
  /** Returns the factory's pull requests that merged, per period. */
  async factoryMerges(window: PeriodWindow): Promise<MergedPullRequests> {
    const { rows } = await searches.query<MergesRow>(FACTORY_MERGES, [
      window.factoryUid,
      ...columnsOf(boundsOf(window)),
    ]);
    const byPeriod = new Map(rows.map((row) => [row.period, row]));
    const inOrder = window.starts.map((_start, index) => byPeriod.get(index + 1));
    const times = (milestone: (typeof MILESTONES)[number]): Float64Array =>
      toTimes(inOrder.flatMap((row) => row?.[milestone] ?? []));
    return {
      periods: inOrder.map((row) => (row ? toMergeCounts(row) : NO_MERGES)),
      times: {
        kickoffAt: times("kickoff_at"),
        openedAt: times("opened_at"),
        firstHumanReviewAt: times("first_human_review_at"),
        mergedAt: times("merged_at"),
      },
    };
  },

  /** Returns how many pull requests of anyone merged in the factory's repositories, per period. */
  async countMerges(window: PeriodWindow, teamUid: string, repositories: readonly string[]): Promise<number[]> {
    const { before, days, after } = splitDays(window.range);
    const { rows } = await searches.query<{ period: number; merged: number }>(ALL_MERGES, [
      teamUid,
      repositories.map((name) => name.toLowerCase()),
      window.starts,
      days.start,
      days.end,
      before.start,
      before.end,
      after.start,
      after.end,
      window.factoryUid,
    ]);
    const merged = window.starts.map(() => 0);
    for (const row of rows) merged[row.period - 1] = row.merged;
    return merged;
  },

  /**
   * Returns the repositories in which the factory's runs have produced pull requests, each as the newest one spells it.
   */
  async producedRepositories(factoryUid: string): Promise<string[]> {
    const { rows } = await searches.query<{ name: string }>(PRODUCED_REPOSITORIES, [factoryUid]);
    return rows.map(({ name }) => name);
  },
});

const MILESTONES = ["kickoff_at", "opened_at", "first_human_review_at", "merged_at"] as const;

/**
 * Packing the times of all pull requests costs PostgreSQL far less than sorting them for medians, and the driver far
 * less than a row per pull request.
 */
const packedTimes = (milestone: (typeof MILESTONES)[number]): string =>
  `string_agg(timestamptz_send(coalesce(${milestone}, '-infinity')), '') AS ${milestone}`;

/** Merges of a partial day in the shape of daily sums. */
const mergesIn = (from: string, to: string): string => `
          SELECT width_bucket(merged_at, $3::timestamptz[]), 1
            FROM pull_requests
           WHERE team_uid = $1
             AND lower(repo_full_name) = ANY($2::text[])
             AND merged_at >= ${from}
             AND merged_at < ${to}`;

/** Each period is a range of the index: rows come in the order of periods, so that grouping requires no sort. */
const FACTORY_MERGES = `
  SELECT period,
         count(*) AS merged,
         count(*) - count(opened_at) AS unopened,
         count(*) FILTER (WHERE history_complete) AS observed,
         count(*) FILTER (WHERE history_complete AND NOT human_code_change) AS without_human_code_change,
         coalesce(sum(additions) FILTER (WHERE is_sized), 0)::bigint AS additions,
         coalesce(sum(deletions) FILTER (WHERE is_sized), 0)::bigint AS deletions,
         count(*) FILTER (WHERE is_sized) AS sized,
         ${MILESTONES.map(packedTimes).join(",\n         ")}
    FROM unnest($2::timestamptz[], $3::timestamptz[]) WITH ORDINALITY AS periods (starts_at, ends_at, period)
   CROSS JOIN LATERAL (
         SELECT *, additions IS NOT NULL AND deletions IS NOT NULL AS is_sized
           FROM factory_pull_requests
          WHERE factory_uid = $1
            AND merged_at >= starts_at
            AND merged_at < ends_at) merged
   GROUP BY period`;

/**
 * Whole days are read as sums; only the partial days at the ends are read merge by merge. The factory's own merges are
 * among those of its repositories, except those that no code host has reported.
 */
const ALL_MERGES = `
  SELECT period, sum(merged)::bigint AS merged
    FROM (SELECT width_bucket(day::timestamp AT TIME ZONE 'UTC', $3::timestamptz[]) AS period, merged
            FROM repository_merge_days
           WHERE team_uid = $1
             AND repository = ANY($2::text[])
             AND day >= utc_day($4)
             AND day < utc_day($5)
          UNION ALL
          ${mergesIn("$6", "$7")}
          UNION ALL
          ${mergesIn("$8", "$9")}
          UNION ALL
          SELECT width_bucket(merged_at, $3::timestamptz[]), 1
            FROM factory_pull_requests
           WHERE factory_uid = $10
             AND merged_at >= $6
             AND merged_at < $9
             AND NOT has_host_facts) merges
   GROUP BY period`;

/** Skips from one repository to the next in the index, so that the number of pull requests does not matter. */
const PRODUCED_REPOSITORIES = `
  WITH RECURSIVE repository AS (
    SELECT (SELECT min(lower(repo_full_name)) FROM factory_pull_requests WHERE factory_uid = $1) AS key
     UNION ALL
    SELECT (SELECT min(lower(repo_full_name)) FROM factory_pull_requests WHERE factory_uid = $1 AND lower(repo_full_name) > key)
      FROM repository
     WHERE key IS NOT NULL)
  SELECT newest.repo_full_name AS name
    FROM repository
   CROSS JOIN LATERAL (SELECT repo_full_name
                         FROM factory_pull_requests
                        WHERE factory_uid = $1
                          AND lower(repo_full_name) = key
                        ORDER BY coalesce(opened_at, '-infinity') DESC, url_key
                        LIMIT 1) newest`;

const BYTES = 8;
/** PostgreSQL sends a time as a big-endian 64-bit integer: microseconds since this time, in milliseconds. */
const EPOCH_MS = Date.UTC(2000, 0, 1);
/** The upper half of the smallest integer, which is -infinity. */
const NEGATIVE_INFINITY_HIGH = -(2 ** 31);

/** Returns packed times in milliseconds; NaN: not known. */
function toTimes(packed: readonly Buffer[]): Float64Array {
  const times = new Float64Array(packed.reduce((bytes, { length }) => bytes + length, 0) / BYTES);
  let count = 0;
  for (const bytes of packed) {
    const halves = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let offset = 0; offset < bytes.length; offset += BYTES) {
      const high = halves.getInt32(offset);
      const micros = high * 2 ** 32 + halves.getUint32(offset + BYTES / 2);
      times[count++] = high === NEGATIVE_INFINITY_HIGH ? Number.NaN : EPOCH_MS + micros / 1000;
    }
  }
  return times;
}

const toMergeCounts = (row: MergesRow): MergeCounts => ({
  merged: row.merged,
  unopened: row.unopened,
  observed: row.observed,
  withoutHumanCodeChange: row.without_human_code_change,
  additions: row.additions,
  deletions: row.deletions,
  sized: row.sized,
});

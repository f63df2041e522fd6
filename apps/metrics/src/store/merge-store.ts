import type { Sql } from "@millwright/database";
import { boundsOf, columnsOf, splitDays, type PeriodWindow } from "../domain/period-window.ts";
import { NO_MERGES, type LatencyStage, type Merges } from "../domain/pull-request-metrics.ts";

type StageRow = Record<`${(typeof STAGES)[number]}_${"median" | "count"}`, number | null>;
type MergesRow = StageRow & {
  period: number | null;
  merged: number;
  observed: number;
  without_human_code_change: number;
  additions: number;
  deletions: number;
  sized: number;
};

/** Pull requests by when they merged: the factory's own, and those of anyone in its repositories. */
export const mergeStore = (searches: Sql) => ({
  /** Returns the merges of the factory's pull requests in the whole range and per period. */
  async factoryMerges(window: PeriodWindow): Promise<{ total: Merges; periods: Merges[] }> {
    const { rows } = await searches.query<MergesRow>(FACTORY_MERGES, [
      window.factoryUid,
      ...columnsOf(boundsOf(window)),
    ]);
    const byPeriod = new Map(rows.map((row) => [row.period, toMerges(row)]));
    const periods = window.starts.map((_start, index) => byPeriod.get(index + 1) ?? NO_MERGES);
    return { total: byPeriod.get(null) ?? NO_MERGES, periods };
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

  /** Returns the repositories in which the factory's runs have produced pull requests, each as the newest one spells it. */
  async producedRepositories(factoryUid: string): Promise<string[]> {
    const { rows } = await searches.query<{ name: string }>(PRODUCED_REPOSITORIES, [factoryUid]);
    return rows.map(({ name }) => name);
  },
});

const STAGES = ["kickoff_to_pr", "pr_to_first_review", "first_review_to_merge", "kickoff_to_merge"] as const;

const stageColumns = (stage: (typeof STAGES)[number]): string =>
  `percentile_cont(0.5) WITHIN GROUP (ORDER BY ${stage}) AS ${stage}_median, count(${stage}) AS ${stage}_count`;

/** A stage that ends before it begins is not measured: clocks differ, and reviews may come before a draft is ready. */
const stageSeconds = (start: string, end: string): string =>
  `CASE WHEN ${end} >= ${start} THEN date_part('epoch', ${end} - ${start}) END`;

/** Merges of a partial day in the shape of daily sums. */
const mergesIn = (from: string, to: string): string => `
          SELECT width_bucket(merged_at, $3::timestamptz[]), 1
            FROM pull_requests
           WHERE team_uid = $1
             AND lower(repo_full_name) = ANY($2::text[])
             AND merged_at >= ${from}
             AND merged_at < ${to}`;

/** Each period is a range of the index: rows come in the order of periods, so that grouping them needs no sort. */
const FACTORY_MERGES = `
  SELECT period,
         count(*) AS merged,
         count(*) FILTER (WHERE history_complete) AS observed,
         count(*) FILTER (WHERE history_complete AND NOT human_code_change) AS without_human_code_change,
         coalesce(sum(additions) FILTER (WHERE is_sized), 0)::bigint AS additions,
         coalesce(sum(deletions) FILTER (WHERE is_sized), 0)::bigint AS deletions,
         count(*) FILTER (WHERE is_sized) AS sized,
         ${STAGES.map(stageColumns).join(",\n         ")}
    FROM unnest($2::timestamptz[], $3::timestamptz[]) WITH ORDINALITY AS periods (starts_at, ends_at, period)
   CROSS JOIN LATERAL (
         SELECT *,
                additions IS NOT NULL AND deletions IS NOT NULL AS is_sized,
                ${stageSeconds("kickoff_at", "opened_at")} AS kickoff_to_pr,
                ${stageSeconds("opened_at", "first_human_review_at")} AS pr_to_first_review,
                ${stageSeconds("first_human_review_at", "merged_at")} AS first_review_to_merge,
                ${stageSeconds("kickoff_at", "merged_at")} AS kickoff_to_merge
           FROM factory_pull_requests
          WHERE factory_uid = $1
            AND merged_at >= starts_at
            AND merged_at < ends_at) merged
   GROUP BY GROUPING SETS ((), (period))`;

/**
 * Whole days are read as sums; merge by merge are only the parts of days at the ends. The factory's own merges are among those of its repositories,
 * except those that no code host has reported.
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

const stage = (median: number | null, count: number | null): LatencyStage => ({
  medianSeconds: median,
  measured: count ?? 0,
});

const toMerges = (row: MergesRow): Merges => ({
  merged: row.merged,
  observed: row.observed,
  withoutHumanCodeChange: row.without_human_code_change,
  additions: row.additions,
  deletions: row.deletions,
  sized: row.sized,
  kickoffToPr: stage(row.kickoff_to_pr_median, row.kickoff_to_pr_count),
  prToFirstReview: stage(row.pr_to_first_review_median, row.pr_to_first_review_count),
  firstReviewToMerge: stage(row.first_review_to_merge_median, row.first_review_to_merge_count),
  kickoffToMerge: stage(row.kickoff_to_merge_median, row.kickoff_to_merge_count),
});

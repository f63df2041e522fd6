import type { Sql } from "@millwright/database";
import { alignToPeriods, type PeriodWindow } from "../domain/period-window.ts";
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
    const { factoryUid, starts, range } = window;
    const { rows } = await searches.query<MergesRow>(FACTORY_MERGES, [factoryUid, starts, range.start, range.end]);
    const total = rows.find(({ period }) => period === null);
    const ofPeriods = rows.flatMap(({ period, ...row }) => (period === null ? [] : [{ ...row, period }]));
    return {
      total: total ? toMerges(total) : NO_MERGES,
      periods: alignToPeriods(window, ofPeriods, toMerges, NO_MERGES),
    };
  },

  /** Returns how many pull requests that are not the factory's merged in the repositories, per period. */
  async countOtherMerges(window: PeriodWindow, teamUid: string, repositories: readonly string[]): Promise<number[]> {
    const { factoryUid, starts, range } = window;
    const { rows } = await searches.query<{ period: number; merged: number }>(OTHER_MERGES, [
      factoryUid,
      starts,
      range.start,
      range.end,
      teamUid,
      repositories.map((name) => name.toLowerCase()),
    ]);
    return alignToPeriods(window, rows, ({ merged }) => merged, 0);
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

const FACTORY_MERGES = `
  SELECT period,
         count(*) AS merged,
         count(*) FILTER (WHERE history_complete) AS observed,
         count(*) FILTER (WHERE history_complete AND NOT human_code_change) AS without_human_code_change,
         coalesce(sum(additions) FILTER (WHERE is_sized), 0)::bigint AS additions,
         coalesce(sum(deletions) FILTER (WHERE is_sized), 0)::bigint AS deletions,
         count(*) FILTER (WHERE is_sized) AS sized,
         ${STAGES.map(stageColumns).join(",\n         ")}
    FROM (SELECT width_bucket(merged_at, $2::timestamptz[]) AS period, history_complete, human_code_change,
                 additions, deletions, additions IS NOT NULL AND deletions IS NOT NULL AS is_sized,
                 ${stageSeconds("kickoff_at", "opened_at")} AS kickoff_to_pr,
                 ${stageSeconds("opened_at", "first_human_review_at")} AS pr_to_first_review,
                 ${stageSeconds("first_human_review_at", "merged_at")} AS first_review_to_merge,
                 ${stageSeconds("kickoff_at", "merged_at")} AS kickoff_to_merge
            FROM factory_pull_requests
           WHERE factory_uid = $1
             AND merged_at >= $3
             AND merged_at < $4) merged
   GROUP BY GROUPING SETS ((), (period))`;

const OTHER_MERGES = `
  SELECT width_bucket(p.merged_at, $2::timestamptz[]) AS period, count(*) AS merged
    FROM pull_requests p
   WHERE p.team_uid = $5
     AND lower(p.repo_full_name) = ANY($6::text[])
     AND p.merged_at >= $3
     AND p.merged_at < $4
     AND NOT EXISTS (SELECT FROM factory_pull_requests f WHERE f.factory_uid = $1 AND f.url_key = p.url_key)
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

const toMerges = (row: Omit<MergesRow, "period">): Merges => ({
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

import type { Database } from "@millwright/database";
import type { PeriodWindow } from "../domain/period-window.ts";
import type { PullRequestCostCell } from "../domain/pull-request-cost.ts";
import { PULL_REQUEST_SIZES, SIZE_LINES_MIN } from "../domain/pull-request-size.ts";

/** Spend of pull requests by the time they were first seen. */
export function pullRequestCostStore(database: Database) {
  return {
    /** Returns the number and the whole spend of pull requests first seen in a range, per period and size. */
    async listPullRequestCosts({ factoryUid, range, starts }: PeriodWindow): Promise<PullRequestCostCell[]> {
      const { rows } = await database.searches.query<CellRow>(LIST_CELLS, [
        factoryUid,
        range.start,
        range.end,
        starts,
        SIZE_LINES_MIN,
      ]);
      return rows.map((row) => ({
        period: row.period,
        size: row.size === null ? undefined : PULL_REQUEST_SIZES[row.size],
        prCount: row.pull_requests,
        spend: {
          inferenceMicros: BigInt(row.inference),
          computeMicros: BigInt(row.compute),
          platformMicros: BigInt(row.platform),
        },
      }));
    },
  };
}

type CellRow = {
  period: number;
  size: number | null;
  pull_requests: number;
  inference: string;
  compute: string;
  platform: string;
};

/** The size is null unless both line counts are known. */
const LIST_CELLS = `
  SELECT width_bucket(first_seen_at, $4::timestamptz[]) - 1 AS period,
         width_bucket(additions::bigint + deletions, $5::bigint[]) AS size,
         count(*) AS pull_requests,
         sum(inference_micros) AS inference,
         sum(compute_micros) AS compute,
         sum(platform_micros) AS platform
    FROM factory_pull_requests
   WHERE factory_uid = $1 AND first_seen_at >= $2 AND first_seen_at < $3
   GROUP BY 1, 2`;

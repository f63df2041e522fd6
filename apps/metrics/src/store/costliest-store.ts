import type { Database } from "@millwright/database";
import type { DateRange } from "@millwright/periods";
import type { TreeShare } from "../domain/model-spend.ts";
import {
  FACTORY_PULL_REQUEST_COLUMNS,
  toFactoryPullRequest,
  type FactoryPullRequest,
  type FactoryPullRequestRow,
} from "./factory-pull-request-row.ts";

export type CostliestQuery = { readonly factoryUid: string; readonly range: DateRange; readonly limit: number };

/** "" = not known. */
export type KickoffRun = {
  readonly source: string;
  readonly modelId: string;
  readonly creatorType: string;
  readonly creatorUid: string;
};

export type CostlyPullRequest = {
  readonly record: FactoryPullRequest;
  readonly shares: readonly TreeShare[];
  /** Undefined: its facts are not known. */
  readonly kickoffRun: KickoffRun | undefined;
};

/** The pull requests that cost most. */
export function costliestStore(database: Database) {
  return {
    /**
     * Returns pull requests first seen in a range, most expensive first, ties by URL. One statement, so that shares and
     * sums agree.
     */
    async listCostliest({ factoryUid, range, limit }: CostliestQuery): Promise<CostlyPullRequest[]> {
      const { rows } = await database.searches.query<CostlyRow>(LIST, [factoryUid, range.start, range.end, limit]);
      return rows.map((row) => ({
        record: toFactoryPullRequest(row),
        shares: row.shares.map(toTreeShare),
        kickoffRun: row.kickoff_run ?? undefined,
      }));
    },
  };
}

type ShareJson = { micros: string; pullRequestCount: number; models: readonly { modelId: string; micros: string }[] };
type CostlyRow = FactoryPullRequestRow & { shares: readonly ShareJson[]; kickoff_run: KickoffRun | null };

const BY_COST = `f.inference_micros + f.compute_micros + f.platform_micros DESC, f.url_key COLLATE "C"`;

const LIST = `
  WITH costliest AS MATERIALIZED (
    SELECT f.url_key
      FROM factory_pull_requests f
     WHERE f.factory_uid = $1 AND f.first_seen_at >= $2 AND f.first_seen_at < $3
     ORDER BY ${BY_COST}
     LIMIT $4)
  SELECT ${FACTORY_PULL_REQUEST_COLUMNS},
         (SELECT coalesce(json_agg(json_build_object(
                   'micros', s.inference_micros::text,
                   'pullRequestCount', (SELECT count(*) FROM pull_request_shares o WHERE o.root_run_uid = s.root_run_uid),
                   'models', (SELECT coalesce(json_agg(json_build_object('modelId', t.model_id, 'micros', t.micros::text)), '[]')
                                FROM tree_costs t
                               WHERE t.root_run_uid = s.root_run_uid AND t.component = 'inference'))), '[]')
            FROM pull_request_shares s
           WHERE s.factory_uid = f.factory_uid AND s.url_key = f.url_key) AS shares,
         (SELECT json_build_object('source', r.source, 'modelId', r.model_id, 'creatorType', r.creator_type, 'creatorUid', r.creator_uid)
            FROM run_facts r
           WHERE r.run_uid = f.kickoff_run_uid) AS kickoff_run
    FROM costliest
    JOIN factory_pull_requests f ON f.factory_uid = $1 AND f.url_key = costliest.url_key
   ORDER BY ${BY_COST}`;

const toTreeShare = ({ micros, pullRequestCount, models }: ShareJson): TreeShare => ({
  inferenceMicros: BigInt(micros),
  pullRequestCount,
  models: models.map(({ modelId, micros: whole }) => ({ modelId, inferenceMicros: BigInt(whole) })),
});

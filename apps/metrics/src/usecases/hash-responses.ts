import { createHash } from "node:crypto";
import { serviceCaller, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { newUid } from "@millwright/ids";
import { Cursors } from "@millwright/paging";
import { COST_GROUPINGS } from "../domain/cost-groups.ts";
import { RUN_DIMENSIONS } from "../domain/run-breakdown.ts";
import { metricsQueries } from "../store/metrics-queries.ts";
import type { FactoryOfTeam } from "../store/rebuild-store.ts";
import { getCostBreakdown } from "./get-cost-breakdown.ts";
import { getCostBySize } from "./get-cost-by-size.ts";
import { getCostPerPullRequest } from "./get-cost-per-pull-request.ts";
import { getMetrics } from "./get-metrics.ts";
import { getRunBreakdown } from "./get-run-breakdown.ts";
import { listCostliest } from "./list-costliest.ts";
import { listPullRequests } from "./list-pull-requests.ts";
import type { RangeQuery } from "./resolve-scope.ts";

const RANGE_DAYS = 365;
const DAY_MS = 86_400_000;

/**
 * Returns a hash of what each endpoint returns for the factory: for the year before `end` by month, and of all its pull
 * requests. Names of creators and repositories of the definition belong to other services and are not included.
 */
export async function hashResponses(
  database: Database,
  clock: Clock,
  factory: FactoryOfTeam,
  end: Date,
): Promise<ReadonlyMap<string, string>> {
  const { uid: factoryUid, teamUid } = factory;
  const deps = {
    clock,
    asOf: async () => end,
    factories: { get: async () => ({ uid: factoryUid, teamUid, repositories: [] }) },
    principals: { findPrincipals: async () => undefined },
    ...metricsQueries(database),
    cursors: new Cursors(new Uint8Array(32)),
  };
  const caller: Caller = serviceCaller("metrics", newUid(), undefined, [{ teamUid, verbs: ["factory.view"] }]);
  const start = new Date(end.getTime() - RANGE_DAYS * DAY_MS);
  const query: RangeQuery = { factoryUid, start, end, groupByPeriod: "month" };

  async function* pullRequests() {
    for (let pageToken = ""; ;) {
      const filter = { repo: "", states: [] };
      const page = await listPullRequests(deps, caller, { factoryUid, pageSize: 500, pageToken, ...filter });
      yield page.pullRequests;
      pageToken = page.nextPageToken;
      if (pageToken === "") return;
    }
  }
  const responses: Readonly<Record<string, () => AsyncIterable<unknown> | Iterable<Promise<unknown>>>> = {
    metrics: () => [getMetrics(deps, caller, query)],
    "run-breakdown": () => RUN_DIMENSIONS.map((dimension) => getRunBreakdown(deps, caller, query, dimension)),
    "costs/per-pr": () => [getCostPerPullRequest(deps, caller, query)],
    "costs/breakdown": () => COST_GROUPINGS.map((grouping) => getCostBreakdown(deps, caller, query, grouping)),
    "costs/top": () => [listCostliest(deps, caller, query, 50)],
    "costs/by-size": () => [getCostBySize(deps, caller, query)],
    "pull-requests": pullRequests,
  };
  const hashes = new Map<string, string>();
  for (const [endpoint, read] of Object.entries(responses)) {
    const hash = createHash("sha256");
    for await (const response of read()) hash.update(JSON.stringify(response, withoutBigints));
    hashes.set(endpoint, hash.digest("hex"));
  }
  return hashes;
}

const withoutBigints = (_key: string, value: unknown): unknown => (typeof value === "bigint" ? String(value) : value);
